# The command line: docker build -t msmqwire . && docker run --rm -v "$PWD:/captures:ro" msmqwire summary capture.pcapng
ARG PYTHON=3.11
FROM python:${PYTHON}-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev
RUN python -m pip install --no-cache-dir uv && python -m venv --without-pip /opt/msmqwire
WORKDIR /src
# scipy, fsspec, ldap3 and deltalake are in [routing], [remote], [ldap] and [lake]; Spark, in [spark], needs Java as well
ARG EXTRAS="tables insight compression net"
# A layer of their own: a change of the sources does not download them again
COPY pyproject.toml requirements.lock ./
RUN uv pip install --no-cache --python /opt/msmqwire --constraint requirements.lock --requirement pyproject.toml \
    $(printf -- '--extra %s ' $EXTRAS)
COPY setup.py README.md LICENSE MANIFEST.in ./
COPY msmqwire msmqwire
COPY pyspark_msmq pyspark_msmq
RUN uv pip install --no-cache --python /opt/msmqwire --no-deps .

FROM python:${PYTHON}-slim
COPY --from=build /opt/msmqwire /opt/msmqwire
RUN useradd --uid 10001 --no-create-home msmqwire
USER msmqwire
WORKDIR /captures
# Discovery: docker run -p 1801:1801/udp msmqwire serve ...
EXPOSE 1801/udp
ENTRYPOINT ["/opt/msmqwire/bin/msmqwire"]
CMD ["--help"]
