// Package tlsfiles makes configurations of TLS from files with certificates and
// keys. A server reads its files again when they change.
package tlsfiles
