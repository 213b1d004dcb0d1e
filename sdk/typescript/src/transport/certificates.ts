import { readFileSync, statSync } from "node:fs";
import { ChannelCredentials } from "@grpc/grpc-js";
import { InvalidSecurityError } from "../errors/index.js";
import type { ResolvedSecurity } from "./security.js";

/** Milliseconds between two looks at the files. */
const INTERVAL = 1_000;

type Option = "ca" | "cert" | "key";

const WANTED: Record<Option, string> = {
  ca: "want a PEM file with certificates of CAs",
  cert: "want a PEM file with the certificate first, and those of intermediate CAs after it",
  key: "want a PEM file with the private key of the certificate, not encrypted",
};

/** The credentials of channels, from files that may change. */
export class CertificateFiles {
  private looked = performance.now();
  private version: string;
  private credentials: ChannelCredentials;

  /** Throws `InvalidSecurityError` for files that can't be read, or are none of certificates. */
  constructor(private readonly security: ResolvedSecurity) {
    this.version = this.readVersion();
    this.credentials = this.readCredentials();
  }

  /** The credentials of the files as they were a second ago at most; those before while they can't be read. */
  current(): ChannelCredentials {
    if (!this.security.usesTls || performance.now() - this.looked < INTERVAL) return this.credentials;
    this.looked = performance.now();
    const version = this.readVersion();
    if (version === this.version) return this.credentials;
    try {
      this.credentials = this.readCredentials();
      this.version = version;
    } catch (error) {
      if (!(error instanceof InvalidSecurityError)) throw error;
    }
    return this.credentials;
  }

  private readCredentials(): ChannelCredentials {
    if (!this.security.usesTls) return ChannelCredentials.createInsecure();
    const [ca, cert, key] = [this.readPart("ca"), this.readPart("cert"), this.readPart("key")];
    try {
      return ChannelCredentials.createSsl(ca, key, cert);
    } catch (error) {
      const option = cert === null ? "ca" : "cert";
      throw new InvalidSecurityError(
        option,
        `${option} can't be used (${(error as Error).message})`,
        WANTED[option],
      );
    }
  }

  private readPart(option: Option): Buffer | null {
    const path = this.security[option];
    if (path === "") return null;
    let text: Buffer;
    try {
      text = readFileSync(path);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw new InvalidSecurityError(option, `${option} ${path} can't be read (${code})`, WANTED[option]);
    }
    if (!text.includes(option === "key" ? "PRIVATE KEY-----" : "-----BEGIN CERTIFICATE-----")) {
      throw new InvalidSecurityError(option, `${option} ${path} has none`, WANTED[option]);
    }
    return text;
  }

  /** Changes with the files. */
  private readVersion(): string {
    const { ca, cert, key } = this.security;
    return [ca, cert, key]
      .map((path) => (path === "" ? undefined : statSync(path, { throwIfNoEntry: false })))
      .map((stat) => (stat === undefined ? "" : `${stat.ino} ${stat.mtimeMs} ${stat.size}`))
      .join(",");
  }
}
