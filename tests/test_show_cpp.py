"""Quoting C++: definitions found in real text, generated files that are those of the installed library, stacks, missing trees."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from readtorch import show
from readtorch.show import _cpp, _generated, _source_tree, _stack
from readtorch.show._locate import locate

needs_addr2line = pytest.mark.skipif(shutil.which("addr2line") is None, reason="no addr2line (GNU binutils) here")

INCLUDE = Path(torch.__file__).parent / "include"


@pytest.fixture(autouse=True)
def same_seed_everywhere():
    """In place of the suite's fixture of that name: nothing here is random."""


# -- definitions --------------------------------------------------------------------------------

TEXT = r"""
#include <vector> // { not a brace
#define TWICE(x) { x; x; } \
  ;
DEFINE_int(limit, 3)

namespace at::native {
namespace {

constexpr int sizes[] = {1, 2, 3};
static const auto table = make_table({{"a", 1}, {"b", 2}});

// Note [ Why twice ]
// ~~~~~~~~~~~~~~~~~~
// Because "}" once is not enough.

template <typename T, std::enable_if_t<(sizeof(T) > 2), int> = 0>
inline std::vector<T> twice(const T& x, int n = 2) {
  if (n > 1) { return {x, x}; }
  auto f = [&](int i) { return '}'; };
  return {};
}

#if defined(FAST)
int fast() {
  return 1;
#else
int fast() { {
  return 2;
#endif
}

} // namespace

struct TORCH_API Point final : public Base<int> {
  Point() : x_{1}, y_(f({2})) {}
  explicit Point(int x) noexcept
      : x_(x) {
    check();
  }
  bool operator==(const Point& other) const { return true; }
  void operator()(int) {}
  int x() const;
 private:
  int x_{0}, y_ = 1;
  enum class Kind { A, B };
};

int Point::x() const { return x_; }

int twice(int a, int b) { return a; }

TORCH_IMPL_FUNC(add_out)
(const Tensor& self, const Tensor& other) {
  run();
}

auto Engine::execute(const edge_list& roots, bool keep)
    -> variable_list {
  const char* s = R"x( } )x";
}
} // namespace at::native
extern "C" {
int main(void) { return 0; }
}
struct alignas(2) Half {
  explicit Half(Stream stream)
      : stream_(stream, [](Stream stream) {
          close(stream);
        }) {}
  Id id() const { return id_; }
};
template <>
inline Id id_of<Half>(const Half& x) { return x.id(); }
template <int L = 1>
static std::enable_if_t<L == 1, Id> first(const Half& x) { return x.id(); }
std::function<void(Half&)> creator() { return {}; }
"""


def found(name):
    lines = TEXT.split("\n")
    return [(d.name, lines[d.first - 1].strip(), lines[d.last - 1].strip()) for d in _cpp.find(TEXT, name)]


@pytest.mark.parametrize(
    "name, full, first, last",
    [
        ("execute", "at::native::Engine::execute", "auto Engine::execute(const edge_list& roots, bool keep)", "}"),
        (
            "Engine::execute",
            "at::native::Engine::execute",
            "auto Engine::execute(const edge_list& roots, bool keep)",
            "}",
        ),
        ("Point", "at::native::Point", "struct TORCH_API Point final : public Base<int> {", "};"),
        (
            "Point::x",
            "at::native::Point::x",
            "int Point::x() const { return x_; }",
            "int Point::x() const { return x_; }",
        ),
        (
            "Point::operator==",
            "at::native::Point::operator==",
            *["bool operator==(const Point& other) const { return true; }"] * 2,
        ),
        ("Point::operator()", "at::native::Point::operator()", *["void operator()(int) {}"] * 2),
        ("Kind", "at::native::Point::Kind", *["enum class Kind { A, B };"] * 2),
        ("fast", "at::native::fast", "int fast() {", "}"),
        ("TORCH_IMPL_FUNC(add_out)", "at::native::TORCH_IMPL_FUNC", "TORCH_IMPL_FUNC(add_out)", "}"),
        ("main", "main", *["int main(void) { return 0; }"] * 2),
        ("Half", "Half", "struct alignas(2) Half {", "};"),
        ("Half::Half", "Half::Half", "explicit Half(Stream stream)", "}) {}"),
        ("Half::id", "Half::id", *["Id id() const { return id_; }"] * 2),
        ("id_of", "id_of", "template <>", "inline Id id_of<Half>(const Half& x) { return x.id(); }"),
        (
            "first",
            "first",
            "template <int L = 1>",
            "static std::enable_if_t<L == 1, Id> first(const Half& x) { return x.id(); }",
        ),
        ("creator", "creator", *["std::function<void(Half&)> creator() { return {}; }"] * 2),
        ("Note [ Why twice ]", "Note [Why twice]", "// Note [ Why twice ]", '// Because "}" once is not enough.'),
    ],
)
def test_a_definition_is_found_with_its_braces(name, full, first, last):
    assert found(name) == [(full, first, last)]


def test_overloads_and_templates_come_in_the_file_s_order():
    assert [first for _, first, _ in found("twice")] == [
        "template <typename T, std::enable_if_t<(sizeof(T) > 2), int> = 0>",
        "int twice(int a, int b) { return a; }",
    ]
    assert [first for _, first, _ in found("Point::Point")] == [
        "Point() : x_{1}, y_(f({2})) {}",
        "explicit Point(int x) noexcept",
    ]


@pytest.mark.parametrize("name", ["sizes", "table", "f", "if", "DEFINE_int", "check", "Note [ None ]", "Base"])
def test_what_is_no_definition_is_not_found(name):
    assert found(name) == []


HEADERS = [
    "c10/core/TensorImpl.h",
    "c10/util/intrusive_ptr.h",
    "c10/core/DispatchKeySet.h",
    "torch/csrc/autograd/variable.h",
    "torch/csrc/autograd/function.h",
    "ATen/core/dispatch/Dispatcher.h",
    "ATen/native/cpu/Loops.h",
    "ATen/native/cuda/block_reduce.cuh",
]


@pytest.mark.parametrize("header", HEADERS)
def test_definitions_of_real_headers_are_whole(header):
    """Every one begins with its name's statement and ends at its own brace, and they nest or follow each other."""
    text = (INCLUDE / header).read_text()
    lines = text.split("\n")
    ends = []
    for d in sorted(_cpp.definitions(text), key=lambda d: (d.first, -d.last)):
        body = "\n".join(lines[d.first - 1 : d.last])
        assert d.name.rpartition("::")[2].strip("~") in body and "}" in lines[d.last - 1], d
        while ends and ends[-1] < d.first:
            ends.pop()
        assert not ends or d.last <= ends[-1], d
        ends.append(d.last)
    assert ends


def test_headers_are_quoted_by_name():
    quote = locate("c10/util/intrusive_ptr.h::intrusive_ptr::reset_")
    assert quote.lines[0] == "void reset_() noexcept {" and quote.lines[-1] == "}"
    assert quote.release == "2.13.0" and quote.url.endswith(
        f"/v2.13.0/c10/util/intrusive_ptr.h#L{quote.first}-L{quote.last}"
    )
    with pytest.raises(LookupError, match="defines no nothing"):
        locate("c10/util/intrusive_ptr.h::nothing")
    with pytest.raises(LookupError, match=r"there are \d+ \(.*#1"):
        locate("c10/core/DispatchKeySet.h::DispatchKeySet::add")
    second = locate("c10/core/DispatchKeySet.h::DispatchKeySet::add#2")
    assert second.lines[0].endswith("add(DispatchKeySet ks) const {")
    with pytest.raises(LookupError, match="there are only 2"):
        locate("c10/core/DispatchKeySet.h::DispatchKeySet::add#3")


# -- generated files ----------------------------------------------------------------------------

OPERATORS = ["add.Tensor", "mul_.Tensor", "relu_", "exp", "sum.dim_IntList", "view", "sigmoid_", "select.int"]


def dispatch_table(operator):
    return torch._C._dispatch_dump_table(f"aten::{operator}")


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_library_was_built_from_these_very_lines(operator):
    """The dispatcher says in which file and line a kernel was registered: there the generated file has the registration."""
    assert _generated.misplaced(operator, dispatch_table(operator)) == []


def test_all_three_keys_are_asked_about():
    table = dispatch_table("add_.Tensor")
    for key, row in _generated.KEYS.items():
        [line] = re.findall(rf"^{row}: registered at .*generated/\S+:(\d+)", table, re.M)
        moved = re.sub(rf"^({row}: registered at \S+):\d+", rf"\1:{int(line) + 1}", table, flags=re.M)
        assert re.fullmatch(
            rf"add_.Tensor: \S+:{int(line) + 1} does not register it for {key}",
            *_generated.misplaced("add_.Tensor", moved),
        )
        through = re.sub(rf"^{row}: .*", f"{row}: fallthrough registered at x.cpp:1", table, flags=re.M)
        assert _generated.misplaced("add_.Tensor", through) == [
            f"add_.Tensor: the dispatch table and the generated files differ about {key}"
        ]


def test_the_build_asks_about_eight_operators(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "book/_ext"))
    import rt_source

    assert len(rt_source.ASKED) == 8 and _generated.folder() and _generated.are_there()
    told = []
    monkeypatch.setattr(rt_source.LOG, "warning", lambda *words, **options: told.append(words[1]))
    rt_source.check_places(None, None)
    assert told == []
    monkeypatch.setattr(_generated, "_registers", lambda key, operator: True)
    rt_source.check_places(None, None)
    assert [words.partition(":")[0] for words in told] == ["add.Tensor", "mm", "index_select"]


def test_generated_functions_are_quoted_by_name():
    quote = locate("torch/csrc/autograd/generated/VariableType.cpp::VariableType::add_Tensor")
    assert quote.made and quote.url is None and re.search(r"generated/VariableType_\d\.cpp", quote.path)
    assert "c10::make_intrusive<AddBackward0>()" in "\n".join(quote.lines)
    assert "written by PyTorch's generators" in show.source(quote.name).html


# -- a source tree ------------------------------------------------------------------------------

ENGINE = "torch/csrc/autograd/engine.cpp"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A tree of PyTorch 2.6.0 with one file: text -> None"""
    monkeypatch.setenv(_source_tree.SETTING, str(tmp_path))
    (tmp_path / "version.txt").write_text("2.6.0a0\n")
    (tmp_path / ENGINE).parent.mkdir(parents=True)
    _source_tree.tree.cache_clear()
    yield (tmp_path / ENGINE).write_text
    _source_tree.tree.cache_clear()


RUN = "void Engine::run() {\n  one();\n  two();\n}\n"


def test_files_of_a_tree_are_quoted_with_its_release(tree):
    tree(RUN)
    quote = locate(f"{ENGINE}::Engine::run")
    assert quote.release == "2.6.0" and quote.url.endswith(f"/blob/v2.6.0/{ENGINE}#L1-L4")
    panel = show.source(quote.name, release="2.6.0", keep="1-2", digest=quote.digest)
    assert "PyTorch 2.6.0" in panel.html and "2 lines folded" in panel.html


def test_a_release_of_which_nothing_is_known_stands_without_marks(tree):
    tree(RUN)
    panel = show.source(f"{ENGINE}::Engine::run", keep="90-95", emph="94", digest="of 2.13.0")
    assert "PyTorch 2.6.0" in panel.html and "folded" not in panel.html and "rt-emphasis" not in panel.html


def test_several_releases_may_be_known(tree):
    tree(RUN)
    digest = locate(f"{ENGINE}::Engine::run").digest
    known = {"2.6.0": {"keep": "2", "digest": digest}}
    assert "1 line folded" in show.source(f"{ENGINE}::Engine::run", keep="90-95", digest="of 2.13.0", also=known).html
    tree(RUN.replace("two", "three"))
    with pytest.raises(ValueError, match="has changed"):
        show.source(f"{ENGINE}::Engine::run", keep="90-95", digest="of 2.13.0", also=known)


def test_without_a_tree_one_line_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.delenv(_source_tree.SETTING, raising=False)
    monkeypatch.setattr(_generated, "kept", lambda: tmp_path)
    _source_tree.tree.cache_clear()
    ours = "readtorch.csrc.autograd.engine.execute"
    panel = show.source(
        "torch/csrc/jit/frontend/tracer.cpp::trace",
        ours=ours,
        keep="3-5",
        pairs=["3 ~ 1"],
        digest="00000000",
        ours_digest=show.digest(ours),
    )
    assert "make pytorch-source" in panel.html and "rt-ours" in panel.html and "rt-theirs" not in panel.html
    assert "make pytorch-source" in panel.text
    _source_tree.tree.cache_clear()


def test_a_setting_that_names_no_checkout_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv(_source_tree.SETTING, str(tmp_path))
    _source_tree.tree.cache_clear()
    with pytest.raises(LookupError, match="has no version.txt"):
        locate("torch/csrc/jit/frontend/tracer.cpp::trace")
    _source_tree.tree.cache_clear()


def test_a_tree_that_cannot_be_brought_is_asked_for_once(tmp_path):
    """Without a network, and without apt: the build goes on quietly, and does not try again."""
    tool = Path(__file__).parents[1] / "tools" / "pytorch_source.py"
    command = [sys.executable, str(tool), "--once", str(tmp_path / "source")]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, env={"PATH": ""})
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "git" in (tmp_path / "source.failed").read_text() and not (tmp_path / "source").exists()


# -- stacks -------------------------------------------------------------------------------------

ADD = "torch.ones(2, 3) + torch.ones(4)"


def test_without_addr2line_one_line_stands_for_a_stack(monkeypatch):
    monkeypatch.setenv("PATH", "")
    _stack.frames.cache_clear()
    panel = show.stack(ADD, notes={"THPVariable_add": "unpack"})
    assert panel.text == "the stack of this call is shown where the program addr2line (of GNU binutils) is installed"
    assert panel.text in panel.html and panel.frames == ()


@needs_addr2line
def test_the_stack_of_a_call():
    names = [
        "THPVariable_add",
        "_ops::add_Tensor::call",
        "VariableType::add_Tensor",
        "_ops::add_Tensor::redispatch",
        "wrapper_CPU_add_Tensor",
        "structured_add_Tensor::meta",
        "TensorIteratorBase::compute_shape",
    ]
    panel = show.stack(ADD, notes=dict.fromkeys(names, "says `what`"), links={"VariableType::add_Tensor": "#autograd"})
    assert panel.html.count("says <code>what</code>") == len(names) and 'href="#autograd"' in panel.html
    assert panel.text.index("THPVariable_add") < panel.text.index("compute_shape")
    vmapped = "torch.vmap(lambda x: x + torch.ones(5))(torch.ones(2, 3))"
    panel = show.stack(vmapped, notes={"_ops::add_Tensor::call": ["by the reader", "by the rule"]})
    assert panel.html.index("by the reader") < panel.html.index("by the rule")
    with pytest.raises(ValueError, match="THPVariable_add is not on the stack, or not in this order"):
        show.stack(ADD, notes={"compute_shape": "", "THPVariable_add": ""})
    with pytest.raises(LookupError, match="raises no error"):
        show.stack("torch.ones(2)")


@pytest.mark.parametrize(
    "symbol, name",
    [
        (
            "at::(anonymous namespace)::(anonymous namespace)::wrapper_CPU_add_Tensor(at::Tensor const&)",
            "at::wrapper_CPU_add_Tensor",
        ),
        ("torch::autograd::Node::operator()(std::vector<at::Tensor>&&)", "torch::autograd::Node::operator()"),
        ("c10::intrusive_ptr<T, N<T> > c10::make<T, int>(int&&) const [clone .isra.0]", "c10::make"),
        (
            "_object* torch::autograd::TypeError_to_NotImplemented_<&torch::autograd::f>(_object*)",
            "torch::autograd::TypeError_to_NotImplemented_",
        ),
    ],
)
def test_names_of_symbols(symbol, name):
    assert _stack.plain(symbol) == name


@pytest.fixture
def tool():
    path = Path(__file__).parents[1] / "tools" / "pytorch_source.py"
    spec = importlib.util.spec_from_file_location("pytorch_source", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def by_hand(folder, run):
    (folder / "version.txt").write_text("2.13.0a0\n")


def test_what_half_a_download_left_is_replaced(tool, tmp_path, monkeypatch):
    monkeypatch.setattr(tool, "WAYS", {"git": by_hand})
    (tmp_path / "source" / "c10").mkdir(parents=True)
    assert tool.bring(tmp_path / "source", ["git"], 1) is None
    assert [file.name for file in tmp_path.rglob("*")] == ["source", "version.txt"]


def test_a_step_that_takes_too_long_says_so(tool, tmp_path, monkeypatch):
    script = "import sys, time; print('begun', file=sys.stderr, flush=True); time.sleep(60)"
    monkeypatch.setattr(tool, "WAYS", {"git": lambda folder, run: run(sys.executable, "-c", script)})
    assert "timed out after 1.5 seconds" in tool.bring(tmp_path / "source", ["git"], 1.5)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("once", [True, False])
def test_a_folder_that_cannot_be_made_ends_in_one_line(tool, tmp_path, monkeypatch, capsys, once):
    (tmp_path / "file").touch()
    monkeypatch.setattr(sys, "argv", ["pytorch_source.py", *["--once"] * once, str(tmp_path / "file" / "source")])
    assert tool.main() == (0 if once else 1)
    assert len(capsys.readouterr().err.splitlines()) == (0 if once else 1)
