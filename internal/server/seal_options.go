package server

import (
	"errors"
	"os"

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
	text, err := os.ReadFile(o.EncryptionKeys)
	if err != nil {
		return opts, exit.Usagef("--%s: %v", FlagEncryptionKeys, err).WithHint("want a file with lines like k1: BASE64 OF 32 BYTES")
	}
	opts.Keys, err = seal.ParseKeys(string(text))
	if wrong, ok := errors.AsType[*seal.KeyError](err); ok {
		return opts, exit.Usagef("--%s: %s: %s", FlagEncryptionKeys, o.EncryptionKeys, wrong.Describe()).WithHint("%s", wrong.Want)
	}
	if info, err := os.Stat(o.EncryptionKeys); err == nil && info.Mode().Perm()&0o077 != 0 {
		log.Warn("others may read the encryption keys: give the file mode 0400",
			zap.String("file", o.EncryptionKeys), zap.Stringer("mode", info.Mode().Perm()))
	}
	return opts, nil
}

// keepsSecrets reports whether the secret parts of questions are stored encrypted, or nowhere but in
// memory.
func (o *Options) keepsSecrets(store StoreConfig) bool {
	return store.Kind == kindMemory || o.EncryptionKeys != ""
}
