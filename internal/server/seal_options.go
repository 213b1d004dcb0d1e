package server

import (
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
	"github.com/graphd-dev/graphd/internal/cli/exit"
)

// ReadSealOptions returns the compression and the encryption keys of the store. The
// error is an *exit.UsageError.
func (o *Options) ReadSealOptions(store StoreConfig, log *zap.Logger) (seal.Options, error) {
	opts := seal.Options{Compress: o.Compress}
	if (o.Compress || o.EncryptionKeys != "") && store.Kind == kindMemory {
		return opts, exit.Usagef("--store memory writes nothing that could be compressed or encrypted").
			WithHint("leave out --compress and --%s, or name another store", FlagEncryptionKeys)
	}
	if o.EncryptionKeys == "" {
		return opts, nil
	}
	var err error
	opts.Keys, err = readKeys(keyFile{FlagEncryptionKeys, o.EncryptionKeys, "the encryption keys"}, log, seal.ParseKeys)
	return opts, err
}

// keepsSecrets reports whether the secret parts of questions are stored encrypted, or nowhere but in
// memory.
func (o *Options) keepsSecrets(store StoreConfig) bool {
	return store.Kind == kindMemory || o.EncryptionKeys != ""
}
