// Package stream follows events over restarts of the server, shows them, and ends a
// command with the exit code of the run.
package stream
