# The command line: docker build -t msmqwire . && docker run --rm -v "$PWD:/captures:ro" msmqwire summary capture.pcapng
ARG PYTHON=3.11
FROM python:${PYTHON}-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev
WORKDIR /src
COPY setup.py pyproject.toml README.md LICENSE ./
COPY msmqwire msmqwire
COPY pyspark_msmq pyspark_msmq
# scipy, fsspec and ldap3 are in [routing], [remote] and [ldap]; Spark, in [spark], needs Java as well
ARG EXTRAS=tables,compression,net
RUN python -m venv /opt/msmqwire && /opt/msmqwire/bin/pip install --no-cache-dir ".[${EXTRAS}]"

FROM python:${PYTHON}-slim
COPY --from=build /opt/msmqwire /opt/msmqwire
RUN useradd --uid 10001 --no-create-home msmqwire
USER msmqwire
WORKDIR /captures
# Discovery: docker run -p 1801:1801/udp msmqwire serve ...
EXPOSE 1801/udp
ENTRYPOINT ["/opt/msmqwire/bin/msmqwire"]
CMD ["--help"]
