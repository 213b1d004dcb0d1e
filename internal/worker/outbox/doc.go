// Package outbox holds the messages that wait to be sent to one worker.
package outbox
