// Package keys makes, lists and revokes API keys for those who manage their file.
package keys
