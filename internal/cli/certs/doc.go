// Package certs makes a CA and certificates of servers and clients, for a trial.
package certs
