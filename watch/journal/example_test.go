// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/journal"
)

func Example() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "watch.journal")

	j, damage, err := journal.Open(path, journal.Options{})
	if err != nil || damage != nil {
		fmt.Println(damage, err)
		return
	}
	web := object.Key{Namespace: "team-a", Name: "web"}
	var b journal.Batch
	b.Event("chat", "event-1", []byte(`{"verb":"updated"}`))
	b.Seen("deployments.apps/v1", web, journal.Seen{UID: "8f14", Version: "4711"})
	b.Version("deployments.apps/v1", "4711")
	if err := j.Commit(&b); err != nil {
		fmt.Println(err)
		return
	}
	_ = j.Close() // or the process is killed

	j, _, err = journal.Open(path, journal.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer j.Close()
	version, known := j.Selection("deployments.apps/v1")
	fmt.Println("told up to", version, known)
	objects, failed := j.Objects("deployments.apps/v1")
	for key, seen := range objects {
		fmt.Println(key, "at", seen.Version)
	}
	if err := failed(); err != nil {
		fmt.Println(err)
		return
	}
	<-j.Wake("chat")
	entries, err := j.Next("chat", 0, 10)
	for _, e := range entries {
		fmt.Println("sending", e.ID, string(e.Data))
		err = j.Ack("chat", e.Seq)
	}
	waiting, _, _, _ := j.Waiting("chat")
	fmt.Println("waiting", waiting, err)
	// Output:
	// told up to 4711 true
	// team-a/web at 4711
	// sending event-1 {"verb":"updated"}
	// waiting 0 <nil>
}
