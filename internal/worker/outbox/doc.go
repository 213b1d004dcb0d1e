// Package outbox holds what waits to be sent to one worker.
package outbox
