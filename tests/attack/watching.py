"""What the machinery does by itself while a file loads: no fault of the file."""


def harmless(event, arguments):
    """Whether an audit event is one that loading an honest file shows as well."""
    if (
        event == "compile"
    ):  # to a tree: the text of an archive, which has no file's name, or a default of our own schemas
        return arguments[1] in ("", "<unknown>")
    if event == "open":  # Python looks for the line of a wrong text in its file: there is no file without a name
        return arguments[0] == ""
    return False
