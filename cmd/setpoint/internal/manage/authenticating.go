// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/manager/serving"
)

// authenticating is how clients of metrics and debug pages authenticate. Names, meanings
// and defaults of the flags are those of kube-controller-manager. Source:
// k8s.io/apiserver/pkg/server/options, authentication.go and authorization.go.
type authenticating struct {
	clientCA       string
	header         serving.RequestHeader
	skip, tolerate bool
	tokens, rights string // kubeconfig files
	remember       serving.Remember
	open           []string
	set            *pflag.FlagSet
}

func (a *authenticating) flags(flags *pflag.FlagSet) {
	a.set = flags
	flags.DurationVar(&a.remember.Tokens, "authentication-token-webhook-cache-ttl", 10*time.Second, "how long it counts what the API server says about whose a token is")
	flags.DurationVar(&a.remember.Allowed, "authorization-webhook-cache-authorized-ttl", 10*time.Second, "how long an answer that a user has a right is cached")
	flags.DurationVar(&a.remember.Denied, "authorization-webhook-cache-unauthorized-ttl", 10*time.Second, "how long an answer that a user lacks a right is cached")
	flags.StringSliceVar(&a.open, openFlag, []string{"/healthz", "/readyz", "/livez"}, "`paths` that need no rights; a star at the end stands for any rest. Without this flag, the single checks of health need none either")
	flags.StringVar(&a.clientCA, "client-ca-file", "", "`file` with the authorities whose client certificates are trusted, read again when it changes (default: those that the API server publishes)")
	flags.StringVar(&a.header.CAFile, "requestheader-client-ca-file", "", "`file` with the authorities of proxies that name users in headers (default: those that the API server publishes, with the headers that it publishes)")
	flags.StringSliceVar(&a.header.AllowedNames, "requestheader-allowed-names", nil, "common `names` of such proxies, with --requestheader-client-ca-file; without any all are trusted")
	flags.StringSliceVar(&a.header.UsernameHeaders, "requestheader-username-headers", []string{"x-remote-user"}, "`headers` that may name the user")
	flags.StringSliceVar(&a.header.UIDHeaders, "requestheader-uid-headers", nil, "`headers` that may name his UID")
	flags.StringSliceVar(&a.header.GroupHeaders, "requestheader-group-headers", []string{"x-remote-group"}, "`headers` that name his groups")
	flags.StringSliceVar(&a.header.ExtraHeaderPrefixes, "requestheader-extra-headers-prefix", []string{"x-remote-extra-"}, "what headers begin with that say more about him")
	flags.BoolVar(&a.skip, "authentication-skip-lookup", false, "do not read the authorities that the API server publishes")
	flags.BoolVar(&a.tolerate, "authentication-tolerate-lookup-failure", false, "go on if it cannot be read with --authentication-kubeconfig")
	flags.StringVar(&a.tokens, "authentication-kubeconfig", "", "kubeconfig `file` for reviews of tokens, and to read what the API server publishes (default: as controllers)")
	flags.StringVar(&a.rights, "authorization-kubeconfig", "", "kubeconfig `file` for reviews of rights (default: as controllers)")
}

const openFlag = "authorization-always-allow-paths"

// into reads the files that the flags name, and configures the server with them.
func (a *authenticating) into(answer *cli.Answering) error {
	for flag, names := range map[string][]string{
		"requestheader-allowed-names": a.header.AllowedNames, "requestheader-username-headers": a.header.UsernameHeaders,
		"requestheader-uid-headers": a.header.UIDHeaders, "requestheader-group-headers": a.header.GroupHeaders,
		"requestheader-extra-headers-prefix": a.header.ExtraHeaderPrefixes,
	} {
		for _, name := range names {
			if strings.TrimSpace(name) == "" {
				return fmt.Errorf("--%s: one of its names is empty", flag)
			}
		}
	}
	if !answer.Serves() {
		return nil // the files need not be there
	}
	if a.set.Changed(openFlag) {
		answer.Open(slices.Concat([]string{}, a.open))
	}
	how := serving.Authentication{ClientCAFile: a.clientCA, RequestHeader: a.header, Lookup: a.lookup()}
	how.Remember = serving.Remember{Tokens: notAtAll(a.remember.Tokens), Allowed: notAtAll(a.remember.Allowed), Denied: notAtAll(a.remember.Denied)}
	var err error
	if how.TokenReviews, err = a.config("authentication-kubeconfig", a.tokens); err != nil {
		return err
	}
	if how.SubjectAccessReviews, err = a.config("authorization-kubeconfig", a.rights); err != nil {
		return err
	}
	answer.Known(how)
	return nil
}

// notAtAll is for options whose zero is a default, and whose none is below it.
func notAtAll(d time.Duration) time.Duration {
	if d <= 0 {
		return -1
	}
	return d
}

// lookup: upstream reads nothing without a kubeconfig for it, so that no setup relies on
// it.
func (a *authenticating) lookup() serving.Lookup {
	switch {
	case a.skip:
		return serving.NoLookup
	case a.tolerate, a.tokens == "":
		return serving.TryLookup
	}
	return serving.NeedLookup
}

func (a *authenticating) config(flag, file string) (*rest.Config, error) {
	if file == "" {
		return nil, nil
	}
	target := cli.TargetOf(file)
	config, err := target.Config()
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return config, nil
}
