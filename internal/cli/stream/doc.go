// Package stream follows events over restarts of the server, shows them, and ends a
// command as the run stands.
package stream
