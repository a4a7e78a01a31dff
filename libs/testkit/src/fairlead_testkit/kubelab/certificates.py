"""Certificate authority of a lab, and key pairs for its servers, all on loopback."""

import base64
import hashlib
from pathlib import Path
from typing import Self

import trustme

LOOPBACK = "127.0.0.1"


class Certificates:
    """Key pairs in a folder, made at the lab's first start.

    Who reaches a port that another lab has taken meanwhile meets a server of another authority, and gets no further.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.authority = folder / "ca.crt"
        self.service_account_key = folder / "service-accounts.key"

    def make(self) -> Self:
        """Make the authority, a pair for the API server, one for Kueue, and the key that signs service account tokens."""
        self._folder.mkdir(parents=True, exist_ok=True)
        authority = trustme.CA(organization_name="fairlead kubelab")
        authority.cert_pem.write_to_path(self.authority)
        for name in ("apiserver", "kueue"):
            pair = authority.issue_cert(LOOPBACK, "localhost")
            folder = self.pair(name)
            folder.mkdir(exist_ok=True)
            pair.cert_chain_pems[0].write_to_path(folder / "tls.crt")
            pair.private_key_pem.write_to_path(folder / "tls.key")
        signer = trustme.CA(
            key_type=trustme.KeyType.RSA, organization_name="fairlead kubelab service accounts"
        )
        signer.private_key_pem.write_to_path(self.service_account_key)
        return self

    def pair(self, name: str) -> Path:
        """The folder of a server's `tls.crt` and `tls.key`."""
        return self._folder / name

    @property
    def bundle(self) -> str:
        """The authority's certificate in base64, as kubeconfig files and webhooks hold it."""
        return base64.b64encode(self.authority.read_bytes()).decode()


def token_of(user: str, authority: Path) -> str:
    """The bearer token of a user: differs from lab to lab, and needs no place to be kept in."""
    return hashlib.sha256(user.encode() + authority.read_bytes()).hexdigest()
