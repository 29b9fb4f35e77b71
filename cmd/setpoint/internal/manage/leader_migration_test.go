// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/setpoint-io/setpoint/controllers/registry"
)

// The program that a controller moves to waits for the lease of the migration.
func TestAControllerOfTheMigrationsLeaseNeedsIt(t *testing.T) {
	for component, want := range map[string]struct{ runs, needs bool }{
		"kube-controller-manager": {true, true}, "*": {true, true}, "cloud-controller-manager": {false, false}, "": {true, false},
	} {
		text := "kind: LeaderMigrationConfiguration\napiVersion: controllermanager.config.k8s.io/v1\nleaderName: moving\nresourceLock: leases\ncontrollerLeaders:\n" +
			"- name: route\n  component: kube-controller-manager\n"
		if component != "" {
			text += "- name: nodeipam\n  component: \"" + component + "\"\n"
		}
		file := filepath.Join(t.TempDir(), "migration.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := (&leaderMigration{on: true, file: file}).of(registry.Known())
		if err != nil {
			t.Fatal(err)
		}
		const name = "node-ipam-controller"
		if runs, needs := slices.Contains(names(m.run), name), slices.Contains(m.need, name); runs != want.runs || needs != want.needs {
			t.Errorf("component %q: it runs: %v, under the lease of the migration: %v; want %v, %v", component, runs, needs, want.runs, want.needs)
		}
		if options := m.options("kube-system"); (len(options) == 1) != want.needs {
			t.Errorf("component %q: %d options of the manager", component, len(options))
		}
	}
	off, err := (&leaderMigration{file: "none"}).of(registry.Known())
	if err != nil || len(off.run) != len(registry.Known()) || len(off.need) > 0 {
		t.Errorf("without --enable-leader-migration %d run, %v", len(off.run), err)
	}
}
