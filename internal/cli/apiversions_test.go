// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"testing"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/internal/cli"
)

func TestVersionsOfAPIsAreReadAsKubeAPIServerReadsThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"--v", "api/alpha"}, "api/alpha=true"},
		{[]string{"--v", "api/alpha="}, "api/alpha=true"},
		{[]string{"--v", "b/v1=false,,a/v1, c/v1 = 1"}, "a/v1=true,b/v1=false,c/v1=1"},
		{[]string{"--v", "a/v1", "--v", "a/v1=false"}, "a/v1=false"},
	} {
		var got cli.APIVersions
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		flags.Var(&got, "v", "")
		if err := flags.Parse(c.args); err != nil {
			t.Errorf("%q: %v", c.args, err)
		}
		if got.String() != c.want {
			t.Errorf("%q: got %s, want %s", c.args, &got, c.want)
		}
	}
}

func TestVersionsOfAPIsThatMeanNothingAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"api/alpha=maybe", "=true", " "} {
		var v cli.APIVersions
		if err := v.Set(text); err == nil {
			t.Errorf("%q is taken as %s", text, &v)
		}
	}
}
