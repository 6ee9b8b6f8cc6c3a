#!/bin/bash -eu
# Builds the surface targets of fuzz/surface.py with their corpora and dictionaries, by the rules of OSS-Fuzz for Python.
# CC, CFLAGS and OUT are set by its base image.

python3 -m pip install 'setuptools>=77' 'cython>=3.1,<4'
python3 -m pip install numpy pyarrow hypothesis pytest psutil
# With the flags of the image, not those of the fuzz build: it chooses the sanitizer
MSMQWIRE_BUILD=release LDSHARED="$CC -shared" python3 -m pip install --no-build-isolation .

targets=$(PYTHONPATH=. python3 -c 'from fuzz.__main__ import TARGETS; print(*TARGETS)')
for target in $targets; do
    cat > "fuzz/fuzz_$target.py" <<END
import sys

import atheris

with atheris.instrument_imports(include=["msmqwire"]):
    from fuzz.surface import TARGETS

atheris.Setup(sys.argv, TARGETS["$target"])
atheris.Fuzz()
END
    longest=$(PYTHONPATH=. python3 -c "from fuzz.__main__ import TARGETS; print(TARGETS['$target'].surface_longest)")
    compile_python_fuzzer "fuzz/fuzz_$target.py" --paths "$PWD" --collect-submodules msmqwire
    zip --junk-paths --quiet "$OUT/fuzz_${target}_seed_corpus.zip" "fuzz/corpus/$target"/*
    cp "fuzz/dictionaries/$target.dict" "$OUT/fuzz_$target.dict"
    printf '[libfuzzer]\nmax_len = %s\ntimeout = 25\n' "$longest" > "$OUT/fuzz_$target.options"
done
