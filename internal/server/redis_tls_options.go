package server

import (
	"strings"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/tlsfiles"
)

// RedisTLSOptions are the files of TLS towards a store on Redis.
type RedisTLSOptions struct {
	RedisTLSCert string
	RedisTLSKey  string
	RedisTLSCA   string
}

// redisPrefix precedes the names of these options.
const redisPrefix = "redis-"

// RegisterFlags registers the options.
func (o *RedisTLSOptions) RegisterFlags(f *pflag.FlagSet) {
	f.StringVar(&o.RedisTLSCert, "redis-tls-cert", "",
		"PEM file with the certificate that is presented to a --store rediss://; read again when it changes")
	f.StringVar(&o.RedisTLSKey, "redis-tls-key", "", "PEM file with the private key of --redis-tls-cert; read again when it changes")
	f.StringVar(&o.RedisTLSCA, "redis-tls-ca", "",
		"PEM file with the CAs of a --store rediss:// (default: those of the system); read again when it changes")
}

// validateOptions returns an *exit.UsageError for files that don't suffice, or that the
// store does not use.
func (o *RedisTLSOptions) validateOptions(store string) error {
	for flag, path := range map[string]string{"cert": o.RedisTLSCert, "key": o.RedisTLSKey, "ca": o.RedisTLSCA} {
		if path != "" && !strings.HasPrefix(store, "rediss:") {
			return exit.Usagef("--redis-tls-%s needs a store with TLS", flag).WithHint("name it with --store rediss://HOST:PORT/DB")
		}
	}
	return validatePair(redisPrefix, o.RedisTLSCert, o.RedisTLSKey)
}

// WithRedisTLS returns the configuration of a store with files of TLS. The error is an
// *exit.UsageError.
func (sc StoreConfig) WithRedisTLS(o RedisTLSOptions) (StoreConfig, error) {
	sc.redisTLS = o
	return sc, o.validateOptions(sc.Text)
}

// newRedisOptions returns the options of a store on Redis, with the files of TLS. The
// error is an *exit.UsageError.
func (sc StoreConfig) newRedisOptions(log *zap.Logger) (redis.Options, error) {
	secure, err := openClientFiles(tlsfiles.ClientFiles{
		CA: sc.redisTLS.RedisTLSCA, Cert: sc.redisTLS.RedisTLSCert, Key: sc.redisTLS.RedisTLSKey, OptionPrefix: redisPrefix,
	}, log.Named("redis"))
	return redis.Options{URL: sc.Text, TLS: secure}, err
}
