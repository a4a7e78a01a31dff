# One image with every service of Fairlead, the `fairlead` command and the nats-server that it is tested with. Which of
# them runs is the container's command: `python -m fairlead_scorer`, for example.
#
#   docker build --tag fairlead:local .
#   docker buildx build --platform linux/amd64,linux/arm64 --tag registry.example/fairlead:1 --push .
#
#   docker build --target slurm --tag fairlead-slurm:local .        # with Slurm's commands, for a bridge in a container
#
# Every package comes from requirements.lock, by its hash. None needs a compiler, so arm64 is built like amd64; nkeys alone
# has no wheel, and is packed by the setuptools that the index has that day.
# BASE is a Debian with Python 3.13; give it by digest where builds must be the same bytes.
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PYTHONDONTWRITEBYTECODE=1
WORKDIR /build
# Packages first: they change less often than our own code, and the engine keeps this layer.
COPY requirements.lock deploy/images/locked.py ./
RUN python locked.py requirements.lock hatchling > backend.lock \
 && python locked.py requirements.lock --not fairlead-testkit > run.lock \
 && python -m venv --without-pip /opt/fairlead \
 && python -m venv backend \
 && backend/bin/python -m pip install --quiet --no-deps --require-hashes --only-binary :all: -r backend.lock \
 && backend/bin/python -m pip --python /opt/fairlead/bin/python install --quiet --no-deps --no-compile --require-hashes --only-binary :all: --no-binary nkeys -r run.lock
COPY libs libs
COPY services services
RUN backend/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --no-index --wheel-dir wheels libs/*/ services/*/ \
 && backend/bin/python -m pip --python /opt/fairlead/bin/python install --quiet --no-deps --no-compile --no-index wheels/*.whl \
 && backend/bin/python -m pip --python /opt/fairlead/bin/python check \
 && find /opt/fairlead/lib -type d -name tests -prune -exec rm -r {} + \
 && /opt/fairlead/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/fairlead/lib
COPY deploy/images/healthy.py /opt/fairlead/bin/fairlead-healthy
RUN chmod 0755 /opt/fairlead/bin/fairlead-healthy

FROM ${BASE} AS fairlead
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Fairlead" \
      org.opencontainers.image.description="Fair order for the waiting jobs of shared clusters" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Directories that volumes are mounted on: a new volume takes over their owner.
RUN groupadd --gid 10001 fairlead \
 && useradd --uid 10001 --gid fairlead --home-dir /var/lib/fairlead --no-create-home --shell /usr/sbin/nologin fairlead \
 && install --directory --owner fairlead --group fairlead --mode 0750 \
      /var/lib/fairlead /var/lib/fairlead/accounts /var/lib/fairlead/jetstream /var/lib/fairlead/sim
COPY LICENSE /usr/share/doc/fairlead/LICENSE
COPY --from=build /opt/fairlead /opt/fairlead
ENV PATH=/opt/fairlead/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    XDG_STATE_HOME=/tmp \
    FAIRLEAD_HEALTH_HOST=0.0.0.0
USER 10001:10001
WORKDIR /var/lib/fairlead
EXPOSE 8080
# What `--health-check` of a service does, without loading the service: two seconds of processor time less each time.
HEALTHCHECK --interval=10s --timeout=20s --start-period=120s --retries=6 CMD ["fairlead-healthy"]
CMD ["fairlead", "--help"]

# Slurm's commands, of the base's Debian: SLURM_PACKAGES may name others. They may not be newer than the slurmctld that they
# ask, nor more than two releases older. No munge: a token says who asks. SlurmUser of slurm.conf has to be a user here, too.
# (An engine without BuildKit builds this stage on its way to the last one.)
FROM fairlead AS slurm
ARG SLURM_PACKAGES="slurm-client slurm-wlm-jwt-plugin"
ARG SLURM_USER=slurm
USER root
RUN apt-get update --quiet \
 && DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes --no-install-recommends ${SLURM_PACKAGES} \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/archives \
 && (id "${SLURM_USER}" || useradd --system --no-create-home --shell /usr/sbin/nologin "${SLURM_USER}") \
 && install --directory --owner fairlead --group fairlead --mode 0750 /var/lib/fairlead/slurm
USER 10001:10001

# What is built without --target.
FROM fairlead
