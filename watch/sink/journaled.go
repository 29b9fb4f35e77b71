// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"fmt"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/journal"
)

// Journaled returns the Outbox of a sink in a journal, into which events were put as
// event.Encode has them. Recent may be nil.
func Journaled(j *journal.Journal, name string, recent *Recent) Outbox {
	return journaled{j, name, recent}
}

type journaled struct {
	*journal.Journal
	name   string
	recent *Recent
}

func (j journaled) Next(n int) ([]Item, error) {
	entries, err := j.Journal.Next(j.name, 0, n)
	items := make([]Item, 0, len(entries))
	for _, entry := range entries {
		e, bad := j.recent.find(entry.Data), error(nil)
		if e == nil {
			e, bad = event.Decode(entry.Data)
		}
		if bad != nil {
			bad = fmt.Errorf("event %s in the journal: %w", entry.ID, bad)
		}
		items = append(items, Item{Seq: entry.Seq, Event: e, Err: bad})
	}
	return items, err
}

func (j journaled) Ack(items []Item) error {
	seqs := make([]uint64, len(items))
	for i, item := range items {
		seqs[i] = item.Seq
	}
	return j.Journal.Ack(j.name, seqs...)
}

func (j journaled) Wake() <-chan struct{} { return j.Journal.Wake(j.name) }

// Waiting returns nothing for a journal that is closed: no event in it can be sent any more.
func (j journaled) Waiting() (int, time.Time) {
	n, _, oldest, err := j.Journal.Waiting(j.name)
	if err != nil {
		return 0, time.Time{}
	}
	return n, oldest
}
