// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/manager"
)

// processFlags are those of kube-controller-manager about the process as a whole.
type processFlags struct {
	shutdown, startInterval, resync time.Duration
	contention                      bool
	version                         versionFlag
}

// finishing is what a manager needs beside the time of its controllers when it stops: to
// write events, and to release the lease.
const finishing = 4 * time.Second

func (p *processFlags) flags(flags *pflag.FlagSet) {
	flags.DurationVar(&p.shutdown, "controller-shutdown-timeout", 12*time.Second, "how long controllers may take to finish what they work on when the process stops")
	flags.DurationVar(&p.startInterval, "controller-start-interval", 0, "how long each controller waits before it starts, up to twice that, so that not all start at once")
	flags.DurationVar(&p.resync, "min-resync-period", 12*time.Hour, "how often each controller reconciles all its objects again, up to twice that; 0 is never")
	flags.BoolVar(&p.contention, "contention-profiling", false, "collect profiles of blocking as well, if --profiling is on; it takes time of every lock")
	flags.Var(&p.version, "version", "print the version, and exit")
	flags.Lookup("version").NoOptDefVal = "true"
}

// options are those of the manager.
func (p *processFlags) options() []manager.Option {
	return []manager.Option{
		manager.ShutdownTimeout(max(p.shutdown, 0) + finishing), manager.StartInterval(p.startInterval), manager.Resync(p.resync),
	}
}

// profile switches on the profiles of the flags.
func (p *processFlags) profile(profiling bool) {
	if p.contention && profiling {
		runtime.SetBlockProfileRate(1) // of all blocking, as upstream
	}
}

// versionFlag requests the version. Like kube-controller-manager's, it also takes a version,
// which is then printed. Source: k8s.io/component-base/version/verflag.
type versionFlag struct{ text string }

// String implements pflag.Value.
func (v *versionFlag) String() string {
	if v.text == "" {
		return "false"
	}
	return v.text
}

// Type implements pflag.Value.
func (v *versionFlag) Type() string { return "version" }

// ExplainsItself says that its errors do.
func (v *versionFlag) ExplainsItself() {}

// Set implements pflag.Value.
func (v *versionFlag) Set(text string) error {
	_, err := strconv.ParseBool(text)
	if err != nil && text != "raw" && !strings.HasPrefix(text, "v") {
		return fmt.Errorf("want true, false or raw")
	}
	v.text = text
	return nil
}

// asked reports whether the process prints the version and ends.
func (v *versionFlag) asked() bool {
	on, err := strconv.ParseBool(v.text)
	return on && err == nil || v.text == "raw"
}

func sayVersion(w *cli.World, version string) error {
	_, err := fmt.Fprintln(w.Stdout, "setpoint", cli.WhatThisIs(version))
	return err
}
