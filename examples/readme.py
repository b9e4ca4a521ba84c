"""readme.py ROOT: the C++ of README.md stands word for word in examples/attention.cpp."""
import re
import sys
from pathlib import Path

root = Path(sys.argv[1])
shown = re.search(r"```cpp\n(.*?)```", (root / "README.md").read_text(), re.DOTALL).group(1)
code = (root / "examples/attention.cpp").read_text()
body = re.search(r"// \[README\n(.*?)// README\]", code, re.DOTALL).group(1)
if shown != "#include <jitney/attention.hpp>\n\n" + body:
    sys.exit("README.md shows other code than examples/attention.cpp has")
