// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch"
	"github.com/setpoint-io/setpoint/watch/config"
)

// plan makes the options of the watch from flags and file, or says what is wrong with them. It
// connects to nothing.
func (r *runCommand) plan(c *cobra.Command, args []string) (o watch.PipelineOptions, err error) {
	given := func(flag string) bool { return c.Flags().Changed(flag) }
	if r.selection.kinds, err = kindsOf(args); err != nil {
		return o, err
	}
	var file *config.Config
	if r.file != "" {
		if file, err = readConfig(r.file); err != nil {
			return o, err
		}
		o = watch.Configured(file)
		if err := r.place(file, given); err != nil {
			return o, err
		}
	}
	if err := r.selection.over(&o.Options, given); err != nil {
		return o, err
	}
	if o.Sinks, err = r.printing.sinks(r.w, file, given); err != nil {
		return o, err
	}
	if file != nil && len(file.Sinks) == 0 {
		o.Router = nil // without sinks it leads nowhere, and standard output gets everything
	}
	o.Once = r.once
	if given("cursor") {
		if o.Cursor = r.cursor; r.cursor == "" {
			return o, errors.New("--cursor: want the name of a file")
		}
	}
	if given("cursor-states") {
		o.CursorStates = r.states
	}
	switch {
	case r.within <= 0:
		return o, fmt.Errorf("--causes-within %s: want a time above zero; --causes=false does not ask for causes at all", r.within)
	case o.CursorStates && o.Cursor == "":
		return o, errors.New("--cursor-states keeps states in the cursor, and needs --cursor FILE")
	case r.once && o.Cursor == "" && file == nil:
		return o, errors.New("--once tells what has changed since the last run, and needs --cursor FILE, which knows of it")
	case r.once && o.Cursor == "":
		return o, fmt.Errorf("--once tells what has changed since the last run, and needs --cursor FILE, or a cursor in %s", r.file)
	}
	return o, checkFolder(o.Cursor)
}

// place takes the address of health and metrics and the Lease from the file.
func (r *runCommand) place(c *config.Config, given func(flag string) bool) error {
	if c.Listen != "" && !given("secure-port") && !given("bind-address") {
		if err := r.answering.At(c.Listen); err != nil {
			return fmt.Errorf("%s: listen: %w", c.File(), err)
		}
	}
	if c.Lease == "" {
		return nil
	}
	if !given("leader-elect") {
		r.electing.On()
	}
	if !given("leader-elect-resource-name") && !given("leader-elect-resource-namespace") {
		namespace, name, _ := strings.Cut(c.Lease, "/")
		r.electing.By(object.Key{Namespace: namespace, Name: name})
	}
	return nil
}

// checkFolder returns an error if the folder of a file is not there.
func checkFolder(file string) error {
	if file == "" {
		return nil
	}
	info, err := os.Stat(filepath.Dir(file))
	switch {
	case err != nil:
		return fmt.Errorf("--cursor=%s: its folder cannot be used: %w", file, err)
	case !info.IsDir():
		return fmt.Errorf("--cursor=%s: %s is no folder", file, filepath.Dir(file))
	}
	return nil
}
