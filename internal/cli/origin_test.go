// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/setpoint-io/setpoint/internal/cli"
)

func TestOnlyVersionsThatCanBeDownloadedAreReleased(t *testing.T) {
	for version, want := range map[string]bool{
		"v0.1.0": true, "v1.2.3-rc.1": true, "v0.0.0-20261122120000-0123456789ab": true,
		"v0.1.0-12-g0123abc": false, "v0.1.0-dirty": false, "v0.1.0-12-g0123abc-dirty": false,
		"v0.0.0-20261122120000-0123456789ab+dirty": false, "(devel)": false, "unknown": false, "0123abc": false, "": false,
	} {
		if released := cli.Released(version); released != want {
			t.Errorf("%q is released: %v, want %v", version, released, want)
		}
	}
}

func TestAProgramInBinOfACheckoutKnowsIt(t *testing.T) {
	checkout, other := t.TempDir(), t.TempDir()
	for dir, module := range map[string]string{checkout: cli.ModulePath, other: "example.com/other"} {
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+module+"\n\ngo 1.26.0\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for executable, want := range map[string]string{
		filepath.Join(checkout, "bin", "setpoint"): checkout,
		filepath.Join(other, "bin", "setpoint"):    "",
		"/nothing/bin/setpoint":                    "",
	} {
		if found := cli.Checkout(executable); found != want {
			t.Errorf("the checkout of %s is %q, want %q", executable, found, want)
		}
	}
}
