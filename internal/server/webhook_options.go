package server

import (
	"os"

	"github.com/spf13/pflag"

	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/egress"
	"github.com/graphd-dev/graphd/internal/notify/endpointfile"
)

// WebhookOptions name the endpoints that are told what happens to questions.
type WebhookOptions struct {
	Webhooks     string
	WebhookAllow []string
}

// RegisterFlags registers the options.
func (o *WebhookOptions) RegisterFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Webhooks, flagWebhooks, "",
		"YAML file with endpoints that are told over HTTP what happens to questions, signed: name, url, secrets, and which questions; the same for all replicas")
	f.StringArrayVar(&o.WebhookAllow, FlagWebhookAllow, nil, "host or addresses beyond the Internet to which --webhooks, and webhooks of runs of --langgraph, may send, in the forms of "+
		"--endpoint-allow (repeatable; default: public addresses only)")
}

// Names of options that are also used in messages.
const (
	flagWebhooks     = "webhooks"
	FlagWebhookAllow = "webhook-allow"
)

// validateWebhooks returns an error for values that can't work together.
func (o *Options) validateWebhooks() error {
	if len(o.WebhookAllow) > 0 && o.Webhooks == "" && o.LangGraph == "" {
		return exit.Usagef("--%s needs --%s or --%s", FlagWebhookAllow, flagWebhooks, flagLangGraph).WithHint("name the file with the endpoints")
	}
	_, err := o.parsePatterns()
	return err
}

func (o *WebhookOptions) parsePatterns() (*egress.Policy, error) {
	policy, err := egress.NewPolicy(o.WebhookAllow)
	if err != nil {
		return nil, exit.Usagef("--%s: %v", FlagWebhookAllow, err).WithHint("want HOST:PORT, 10.0.0.0/8:443 or %s", egress.AnyHost)
	}
	return policy, nil
}

// readEndpoints reads the file with the endpoints, none without one. The error is an
// *exit.UsageError.
func (o *WebhookOptions) readEndpoints(getenv func(string) string) ([]endpointfile.Endpoint, error) {
	if o.Webhooks == "" {
		return nil, nil
	}
	allowed, err := o.parsePatterns()
	if err != nil {
		return nil, err
	}
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	text, err := os.ReadFile(o.Webhooks)
	if err != nil {
		return nil, exit.Usagef("--%s: %v", flagWebhooks, err).WithHint("name a YAML file; docs/notifications.md describes it")
	}
	list, err := endpointfile.Parse(o.Webhooks, text, endpointfile.Sources{
		ReadFile: os.ReadFile, Getenv: getenv, Allowed: allowed, Option: "--" + FlagWebhookAllow,
	})
	if err != nil {
		return nil, exit.Usagef("--%s: %v", flagWebhooks, err).WithHint("correct the file; docs/notifications.md describes it")
	}
	return list, nil
}
