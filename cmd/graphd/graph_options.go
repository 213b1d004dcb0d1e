package main

import (
	"github.com/spf13/pflag"

	"github.com/graphd-dev/graphd/internal/cli"
	"github.com/graphd-dev/graphd/internal/schema"
)

// graphOptions bound what graphs and their schemas may cost.
type graphOptions struct {
	Schemas schema.Limits
}

// register is the table of these limits.
func (o *graphOptions) register(f *pflag.FlagSet) {
	f.IntVar(&o.Schemas.Bytes, "max-schema-bytes", 256<<10, "how long the text of a JSON Schema may be")
	f.IntVar(&o.Schemas.Objects, "max-schema-objects", 4096, "how many objects, and so subschemas, a JSON Schema may have")
	f.IntVar(&o.Schemas.Steps, "max-schema-steps", 4_000_000,
		"how many steps of some 50 ns a check against a JSON Schema may take, counted before it begins")
	f.IntVar(&o.Schemas.CacheBytes, "schema-cache-bytes", 32<<20, "how much memory JSON Schemas may take that are kept ready")
}

// check refuses limits that leave no room to work.
func (o *graphOptions) check() error {
	for _, limit := range []struct {
		flag        string
		value, most int
	}{
		{"max-schema-bytes", o.Schemas.Bytes, 1 << 24},
		{"max-schema-objects", o.Schemas.Objects, 1 << 16},
		{"max-schema-steps", o.Schemas.Steps, 1 << 30},
		{"schema-cache-bytes", o.Schemas.CacheBytes, 1 << 40},
	} {
		if limit.value < 1 || limit.value > limit.most {
			return cli.Usagef("--%s is %d", limit.flag, limit.value).WithHint("want a number from 1 to %d", limit.most)
		}
	}
	return nil
}
