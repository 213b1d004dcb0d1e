package main

import (
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/graphd-dev/graphd/internal/cli/certs"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/shell"
)

func (p *program) certsCommand() *cobra.Command {
	var r certs.Request
	cmd := &cobra.Command{
		Use:   "certs",
		Short: "Make a CA and certificates of a server and clients, for a trial of TLS",
		Long: `Make a CA and certificates of a server and clients, for a trial of TLS: PEM files with keys of ECDSA P-256.
A CA that the folder has is used again. The server's certificate is made when there is none, and anew with
--host and --force. No key is replaced without --force, and that of the CA never. Servers need
server.pem, server-key.pem and ca.pem; leave ca-key.pem where certificates are made.`,
		Example: `  graphd certs --dir certs --host 10.0.0.5 --client alice`,
		Args:    exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			format, err := output.ParseFormat(p.outputFormat)
			if err != nil {
				return err
			}
			r.Now = time.Now()
			made, err := certs.WriteCertificates(r)
			if err != nil {
				return err
			}
			if format != output.Text {
				return output.WriteValue(p.Out, format, made)
			}
			return printCertificates(p.Out, shell.Invocation{Program: p.invocation}, made)
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.Dir, "dir", "certs", "folder of the files")
	f.StringArrayVar(&r.Hosts, "host", nil, "name or address of the server besides localhost, 127.0.0.1 and ::1 (repeatable)")
	f.StringArrayVar(&r.Clients, "client", nil, "name of a client that gets a certificate (repeatable)")
	f.IntVar(&r.Days, "valid", 90, "how many days the certificates are valid")
	f.BoolVar(&r.Force, "force", false, "replace keys and certificates that exist, except for those of the CA")
	return cmd
}

// printCertificates prints the files, and the commands that use them.
func printCertificates(out io.Writer, self shell.Invocation, made certs.Result) error {
	for _, path := range made.Kept {
		if err := output.WriteLine(out, "kept   %s", path); err != nil {
			return err
		}
	}
	for _, path := range made.Written {
		if err := output.WriteLine(out, "wrote  %s", path); err != nil {
			return err
		}
	}
	serve := []string{"serve", "--tls-cert", made.Server.Cert, "--tls-key", made.Server.Key}
	call := []string{"health", "--tls-ca", made.CA}
	if made.Client != nil {
		serve = append(serve, "--tls-client-ca", made.CA)
		call = append(call, "--tls-cert", made.Client.Cert, "--tls-key", made.Client.Key)
	}
	return output.WriteLine(out, "\n%s\n%s", self.CommandLine(serve...), self.CommandLine(call...))
}
