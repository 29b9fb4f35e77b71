// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
)

// controlPlane is the program that runs a control plane.
const controlPlane = "setpoint-controlplane"

// ControlPlaneFlag adds the flag --controlplane, whose value is an argument of FindControlPlane.
func ControlPlaneFlag(flags *pflag.FlagSet, path *string) {
	flags.StringVar(path, "controlplane", "", "`path` of setpoint-controlplane (default: $SETPOINT_CONTROLPLANE_BIN, else beside this program, else in PATH)")
}

// FindControlPlane returns the path of setpoint-controlplane: that of the flag, else that of the
// environment, else that of a file beside this program or in PATH.
func (w *World) FindControlPlane(flag string) (string, error) {
	for _, named := range []struct{ by, path string }{
		{"--controlplane", flag}, {"$SETPOINT_CONTROLPLANE_BIN", w.Getenv("SETPOINT_CONTROLPLANE_BIN")},
	} {
		if named.path == "" {
			continue
		}
		if _, err := os.Stat(named.path); err != nil {
			return "", fmt.Errorf("%s: %w", named.by, err)
		}
		return named.path, nil
	}
	if path, err := w.FindProgram(controlPlane); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("%s is neither beside this program nor in PATH: the archives of Setpoint for Linux have both, and \"make build\" in a checkout builds both", controlPlane)
}
