// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Target is the cluster that a command works against.
type Target struct {
	kubeconfig string
	context    string
	server     string // instead of that of the kubeconfig
}

// TargetOf returns the cluster that a kubeconfig file names.
func TargetOf(kubeconfig string) *Target { return &Target{kubeconfig: kubeconfig} }

// Flags adds its flags.
func (t *Target) Flags(flags *pflag.FlagSet) {
	flags.StringVarP(&t.kubeconfig, "kubeconfig", "k", "", "kubeconfig `file` (default: $KUBECONFIG, else ~/.kube/config, else the cluster that this runs in)")
	flags.StringVar(&t.context, "context", "", "`name` of the kubeconfig's context to use (default: its current one)")
}

// ServerFlag adds the flag that names the API server instead of the kubeconfig, as of
// kube-controller-manager.
func (t *Target) ServerFlag(flags *pflag.FlagSet) {
	flags.StringVar(&t.server, "master", "", "`address` of the API server, instead of that of the kubeconfig")
}

// Contexts are those of the kubeconfig, sorted; none if it cannot be read.
func (t *Target) Contexts() []string {
	config, err := t.rules().Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Contexts))
}

func (t *Target) rules() *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = t.kubeconfig
	rules.WarnIfAllMissing = false
	return rules
}

// Config returns how to reach the cluster. Errors name the file and never what
// stands in it: that may be a token.
func (t *Target) Config() (*rest.Config, error) {
	if t.kubeconfig != "" {
		if err := readable(t.kubeconfig); err != nil {
			return nil, err
		}
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(t.rules(),
		&clientcmd.ConfigOverrides{CurrentContext: t.context, ClusterInfo: api.Cluster{Server: t.server}}).ClientConfig()
	switch {
	case err == nil:
		return config, nil
	case clientcmd.IsEmptyConfig(err), errors.Is(err, rest.ErrNotInCluster):
		if t.kubeconfig != "" {
			return nil, fmt.Errorf("kubeconfig %s names no cluster: is it empty, or cut off?", t.kubeconfig)
		}
		return nil, errors.New("no kubeconfig found: name one with --kubeconfig FILE or in $KUBECONFIG; \"setpoint up\" makes a cluster that has one")
	case clientcmd.IsContextNotFound(err):
		return nil, fmt.Errorf("%w; \"kubectl config get-contexts\" lists those there are", err)
	}
	return nil, fmt.Errorf("reading the kubeconfig: %s", OneLine(err))
}

// readable returns what is wrong with a file, in fewer words than the loader.
func readable(file string) error {
	f, err := os.Open(file)
	if err == nil {
		return f.Close()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("kubeconfig %s does not exist", file)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("kubeconfig %s may not be read by this user: its owner can change that with chmod", file)
	}
	return fmt.Errorf("kubeconfig: %w", err)
}

// OneLine is the text of an error without its line breaks.
func OneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
