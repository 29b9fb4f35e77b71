// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storageversionmigrator

import (
	"errors"
	"strings"
	"testing"
	"time"

	migrationv1 "k8s.io/api/storagemigration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// at makes a migration that is so many seconds old, and whose conditions are True.
func at(name string, age int, conditions ...migrationv1.MigrationConditionType) *migrationv1.StorageVersionMigration {
	m := &migrationv1.StorageVersionMigration{ObjectMeta: metav1.ObjectMeta{
		Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1_000_000-int64(age), 0)),
	}}
	for _, c := range conditions {
		set(m, c, metav1.ConditionTrue, "Test", "")
	}
	return m
}

func TestOneMigrationOfAResourceRunsTheOldest(t *testing.T) {
	const running, done, failed = migrationv1.MigrationRunning, migrationv1.MigrationSucceeded, migrationv1.MigrationFailed
	deleted := at("deleted", 9, running)
	deleted.DeletionTimestamp = &metav1.Time{}
	type migrations = []*migrationv1.StorageVersionMigration
	for name, c := range map[string]struct {
		all  migrations
		want string // active, waiting, ended
	}{
		"none":                          {nil, ";;"},
		"the oldest one":                {migrations{at("b", 1), at("a", 2)}, "a;b;"},
		"by name at the same time":      {migrations{at("b", 1), at("a", 1)}, "a;b;"},
		"one that runs already":         {migrations{at("a", 3), at("b", 1, running), at("c", 2)}, "b;a c;"},
		"one that has ended":            {migrations{at("a", 3, running, done), at("b", 1)}, "b;;a"},
		"one that has failed":           {migrations{at("a", 3, running, failed)}, ";;a"},
		"one that was ended before":     {migrations{at("a", 3, done), at("b", 2, failed)}, ";;"},
		"one that is deleted":           {migrations{deleted, at("b", 2)}, "b;;"},
		"two that run":                  {migrations{at("a", 3, running), at("b", 2, running)}, "a;b;"},
		"a failure before it could run": {migrations{at("a", 3, failed), at("b", 2)}, "b;;"},
	} {
		t.Run(name, func(t *testing.T) {
			p := decide(c.all)
			names := func(all migrations) string {
				var n []string
				for _, m := range all {
					n = append(n, m.Name)
				}
				return strings.Join(n, " ")
			}
			active := ""
			if p.active != nil {
				active = p.active.Name
			}
			if got := active + ";" + names(p.waiting) + ";" + names(p.ended); got != c.want {
				t.Errorf("the plan is %q, want %q", got, c.want)
			}
		})
	}
}

// Source of the texts: k8s.io/kubernetes/pkg/controller/storageversionmigrator, migrationRunningMessage.
func TestTheMessageSaysHowFarAMigrationIs(t *testing.T) {
	for want, got := range map[string]string{
		"The migration is running":                                      progress{}.message(nil),
		"The migration is running, 3/10 objects not yet migrated":       progress{3, 10}.message(nil),
		"The migration is running, 10 objects verified migrated":        progress{0, 10}.message(nil),
		"The migration is running; transient error: the server is busy": progress{}.message(errors.New("the server is busy")),
	} {
		if got != want {
			t.Errorf("the message is %q, want %q", got, want)
		}
	}
}
