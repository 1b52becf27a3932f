"""A Firefox that tests steer by WebDriver BiDi, https://www.w3.org/TR/webdriver-bidi/: as much of it as looking at pages needs.

`Page` has the two members of Playwright's page that `keyboard` uses, so that both browsers are asked the same.
"""

import itertools
import json
import re
import shutil
import subprocess
import tempfile
import threading

PROGRAMS = ("firefox-esr", "firefox")
SECONDS = 60  # for one answer
KEYS = {
    "Tab": "\ue004",
    "Enter": "\ue007",
    "Space": " ",
    "End": "\ue010",
    "Home": "\ue011",
    "ArrowLeft": "\ue012",
    "ArrowUp": "\ue013",
    "ArrowRight": "\ue014",
    "ArrowDown": "\ue015",
}
PREFERENCES = """user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("app.update.disabledForTesting", true);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("accessibility.tabfocus", 7);
"""


def program():
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Firefox:
    def __init__(self):
        import websocket

        self._profile = tempfile.TemporaryDirectory()
        with open(f"{self._profile.name}/user.js", "w", encoding="utf8") as preferences:
            preferences.write(PREFERENCES)
        options = ["--headless", "--no-remote", "--profile", self._profile.name, "--remote-debugging-port", "0"]
        self._process = subprocess.Popen([program(), *options], stderr=subprocess.PIPE, text=True)
        address = next(filter(None, (re.search(r"ws://[\d.:]+", line) for line in self._process.stderr)))[0]
        threading.Thread(target=self._process.stderr.read, daemon=True).start()  # so that it never waits for a reader
        self._socket = websocket.create_connection(f"{address}/session", timeout=SECONDS, suppress_origin=True)
        self._numbers = itertools.count(1)
        self.said = []  # errors on the console, and exceptions
        self.send("session.new", capabilities={})
        self.send("session.subscribe", events=["log.entryAdded"])

    def send(self, method, **parameters):
        """The result of a command. What the pages log meanwhile is kept in `said`. RuntimeError if it fails."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("method") == "log.entryAdded" and answer["params"]["level"] == "error":
                self.said.append(answer["params"]["text"])
            elif answer.get("id") == number:
                if answer["type"] == "error":
                    raise RuntimeError(f"{answer['error']}: {answer['message']}")
                return answer["result"]

    def open(self, file):
        context = self.send("browsingContext.create", type="tab")["context"]
        self.send("browsingContext.setViewport", context=context, viewport={"width": 1400, "height": 900})
        self.send("browsingContext.navigate", context=context, url=file.as_uri(), wait="complete")
        return Page(self, context)

    def close(self):
        self._socket.close()
        self._process.terminate()
        self._process.wait()
        self._profile.cleanup()


class Page:
    def __init__(self, firefox, context):
        self._firefox, self._context = firefox, context
        self.keyboard = self

    def evaluate(self, function, *elements):
        """What a JavaScript function returns for elements of the page: a number, text, truth value, list, or an element."""
        answer = self._firefox.send(
            "script.callFunction",
            functionDeclaration=function,
            awaitPromise=True,
            target={"context": self._context},
            arguments=list(elements),
            userActivation=True,
        )
        if answer["type"] == "exception":
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return as_python(answer["result"])

    def press(self, key):
        actions = [{"type": kind, "value": KEYS[key]} for kind in ("keyDown", "keyUp")]
        source = {"type": "key", "id": "keyboard", "actions": actions}
        self._firefox.send("input.performActions", context=self._context, actions=[source])

    def close(self):
        self._firefox.send("browsingContext.close", context=self._context)


def as_python(value):
    if value["type"] == "array":
        return [as_python(one) for one in value["value"]]
    if value["type"] == "node":
        return {"sharedId": value["sharedId"]}
    return value.get("value")  # null and undefined have none
