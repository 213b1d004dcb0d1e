/** Why a connection could not be made, as far as TLS may be the cause. */
type Cause = { words: string; remedy: string };

const NAME = "call the server by a name or an address of its certificate, or make it one with this name";
const OWN =
  "the server refuses this client's certificate, or the lack of one: " +
  "give one of its --tls-client-ca with cert and key (GRAPHD_TLS_CERT and GRAPHD_TLS_KEY)";
const FOREIGN =
  "the server's certificate is of another CA: name the file of its CA with ca (GRAPHD_TLS_CA), " +
  "or give tls: true (GRAPHD_TLS) alone when its CA is one of the system";
const CLOCKS = "the server needs a new certificate; check the clocks, too";

/** The words are those of OpenSSL in errors of Node. The first that fits counts. */
const CAUSES: readonly Cause[] = [
  {
    words: "wrong version number",
    remedy:
      "the server does not serve TLS at this address: leave out tls, ca, cert and key (GRAPHD_TLS and so on), " +
      "or start it with --tls-cert and --tls-key",
  },
  { words: "packet length too long", remedy: "the server does not serve TLS at this address" },
  { words: "certificate has expired", remedy: CLOCKS },
  { words: "certificate is not yet valid", remedy: CLOCKS },
  { words: "does not match certificate's altnames", remedy: NAME },
  { words: "unable to verify the first certificate", remedy: FOREIGN },
  { words: "unable to get local issuer certificate", remedy: FOREIGN },
  { words: "unable to get issuer certificate", remedy: FOREIGN },
  { words: "self-signed certificate", remedy: FOREIGN },
  { words: "certificate required", remedy: OWN },
  { words: "bad certificate", remedy: OWN },
  { words: "unknown ca", remedy: OWN },
];

/** What helps against the failure of a connection; `undefined` when TLS is not its cause. */
export function findRemedy(text: string): string | undefined {
  return CAUSES.find((cause) => text.includes(cause.words))?.remedy;
}
