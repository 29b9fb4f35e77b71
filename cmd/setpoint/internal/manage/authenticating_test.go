// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/manager/serving"
)

func TestWhatIsPublishedMustBeThereOnlyForWhoNamesAKubeconfigToReadItWith(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: a}]}"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		args []string
		want serving.Lookup
	}{
		{"nothing", nil, serving.TryLookup},
		{"a kubeconfig for it", []string{"--authentication-kubeconfig=" + file, "--authorization-kubeconfig=" + file}, serving.NeedLookup},
		{"the same, with patience", []string{"--authentication-kubeconfig=" + file, "--authentication-tolerate-lookup-failure"}, serving.TryLookup},
		{"not at all", []string{"--authentication-kubeconfig=" + file, "--authentication-skip-lookup"}, serving.NoLookup},
	} {
		t.Run(test.name, func(t *testing.T) {
			var a authenticating
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			a.flags(flags)
			if err := flags.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			var answer cli.Answering
			if err := a.into(&answer); err != nil {
				t.Fatal(err)
			}
			if got := a.lookup(); got != test.want {
				t.Errorf("lookup %d, want %d", got, test.want)
			}
		})
	}
}
