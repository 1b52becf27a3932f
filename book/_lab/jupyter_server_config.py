import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from book_contents import BookContents

c.ServerApp.contents_manager_class = BookContents  # noqa: F821  c is what Jupyter configures
