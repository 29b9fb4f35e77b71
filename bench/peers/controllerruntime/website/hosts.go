// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// hosts is the place outside of the cluster: a directory with a file for each Website,
// as dnsmasq reads it with --hostsdir.
type hosts string

// file has a name that no other Website has: a namespace holds no underscore.
func (h hosts) file(site *Website) string {
	return filepath.Join(string(h), site.Namespace+"_"+site.Name)
}

// set has the Website's host lead to an address.
func (h hosts) set(site *Website, address string) error {
	entry := address + " " + site.Spec.Host + "\n"
	if before, err := os.ReadFile(h.file(site)); err == nil && string(before) == entry {
		return nil
	}
	if err := os.WriteFile(h.file(site), []byte(entry), 0o644); err != nil { //nolint:gosec // for a name server to read
		return fmt.Errorf("publishing the host: %w", err)
	}
	return nil
}

// remove takes the entry out, if it is there.
func (h hosts) remove(site *Website) error {
	if err := os.Remove(h.file(site)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("withdrawing the host: %w", err)
	}
	return nil
}
