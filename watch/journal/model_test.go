// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/object"
)

// model is what a journal should be: maps and slices.
type model struct {
	versions map[string]string
	objects  map[string]map[object.Key]Seen
	queues   map[string][]modelEvent
	numbers  map[string]uint64
}

type modelEvent struct {
	seq  uint64
	id   string
	size int64
}

const (
	modelLimit = 6
	modelBytes = 300
)

func (m *model) room(sink string, events int, bytes int64) bool {
	q := m.queues[sink]
	for _, e := range q {
		bytes += e.size
	}
	return len(q) == 0 || len(q)+events <= modelLimit && bytes <= modelBytes
}

func (m *model) add(sink, id string, size int64) {
	if _, ok := m.numbers[sink]; !ok {
		m.numbers[sink] = 1
	}
	m.queues[sink] = append(m.queues[sink], modelEvent{m.numbers[sink], id, size})
	m.numbers[sink]++
}

func entrySize(id string, data []byte) int64 { return int64(len(id) + len(data)) }

func TestJournalIsLikeItsModel(t *testing.T) {
	dir, files := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		o := options()
		o.Limit, o.limitBytes = modelLimit, modelBytes
		files++
		path := filepath.Join(dir, fmt.Sprint(files))
		j, _, err := Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = j.Close() }()
		m := &model{map[string]string{}, map[string]map[object.Key]Seen{}, map[string][]modelEvent{}, map[string]uint64{}}
		sinks := rapid.SampledFrom([]string{"chat", "hook", "mail"})
		selections := rapid.SampledFrom([]string{"pods", "nodes"})
		count := 0
		t.Repeat(map[string]func(*rapid.T){
			"commit": func(t *rapid.T) { m.commit(t, j, sinks, selections, &count) },
			"ack": func(t *rapid.T) {
				sink := sinks.Draw(t, "sink")
				seqs := rapid.SliceOfN(rapid.Uint64Range(0, m.numbers[sink]+2), 0, 5).Draw(t, "seqs")
				if err := j.Ack(sink, seqs...); err != nil {
					t.Fatal(err)
				}
				m.queues[sink] = slices.DeleteFunc(m.queues[sink], func(e modelEvent) bool { return slices.Contains(seqs, e.seq) })
			},
			"drop": func(t *rapid.T) {
				selection := selections.Draw(t, "selection")
				var b Batch
				b.Drop(selection)
				if err := j.Commit(&b); err != nil {
					t.Fatal(err)
				}
				delete(m.versions, selection)
				delete(m.objects, selection)
			},
			"open again": func(t *rapid.T) {
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
				var damage *Damage
				if j, damage, err = Open(path, o); err != nil || damage != nil {
					t.Fatalf("%v, %v", damage, err)
				}
			},
			"": func(t *rapid.T) { m.compare(t, j) },
		})
	})
}

// commit commits a batch of a few changes to both.
func (m *model) commit(t *rapid.T, j *Journal, sinks, selections *rapid.Generator[string], count *int) {
	var b Batch
	events, bytes := map[string]int{}, map[string]int64{}
	var apply []func()
	for range rapid.IntRange(0, 6).Draw(t, "changes") {
		*count++
		id := fmt.Sprint(*count)
		selection := selections.Draw(t, "selection")
		k := key(rapid.IntRange(0, 4).Draw(t, "key"))
		switch rapid.IntRange(0, 4).Draw(t, "change") {
		case 0:
			s := seen(*count)
			b.Seen(selection, k, s)
			apply = append(apply, func() {
				if m.objects[selection] == nil {
					m.objects[selection] = map[object.Key]Seen{}
				}
				m.objects[selection][k] = s
			})
		case 1:
			b.Forget(selection, k)
			apply = append(apply, func() { delete(m.objects[selection], k) })
		case 2:
			b.Version(selection, id)
			apply = append(apply, func() { m.versions[selection] = id })
		default:
			sink := sinks.Draw(t, "sink")
			data := make([]byte, rapid.IntRange(0, 120).Draw(t, "size"))
			b.Event(sink, id, data)
			events[sink]++
			bytes[sink] += entrySize(id, data)
			apply = append(apply, func() { m.add(sink, id, entrySize(id, data)) })
		}
	}
	blocked := false
	for sink := range events {
		blocked = blocked || !m.room(sink, events[sink], bytes[sink])
	}
	err := j.Commit(&b)
	if blocked != (err != nil) {
		t.Fatalf("commit: %v, want one that is full: %v", err, blocked)
	}
	if blocked {
		return
	}
	for _, f := range apply {
		f()
	}
}

func (m *model) compare(t *rapid.T, j *Journal) {
	for _, sink := range []string{"chat", "hook", "mail"} {
		entries, err := j.Next(sink, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		var size int64
		got := make([]modelEvent, 0, len(entries))
		for _, e := range entries {
			got = append(got, modelEvent{e.Seq, e.ID, entrySize(e.ID, e.Data)})
			size += entrySize(e.ID, e.Data)
		}
		if !slices.Equal(got, m.queues[sink]) {
			t.Fatalf("sink %s: %v, want %v", sink, got, m.queues[sink])
		}
		n, bytes, _, err := j.Waiting(sink)
		if n != len(got) || bytes != size || err != nil {
			t.Fatalf("sink %s: %d wait, %d bytes, %v", sink, n, bytes, err)
		}
	}
	for _, selection := range []string{"pods", "nodes"} {
		version, known := j.Selection(selection)
		want, wantKnown := m.versions[selection]
		if version != want || known != wantKnown {
			t.Fatalf("selection %s: %q, %v, want %q, %v", selection, version, known, want, wantKnown)
		}
		seq, failed := j.Objects(selection)
		n := 0
		for k, s := range seq {
			if m.objects[selection][k] != s {
				t.Fatalf("selection %s: object %s is %+v, want %+v", selection, k, s, m.objects[selection][k])
			}
			n++
		}
		if failed() != nil || n != len(m.objects[selection]) {
			t.Fatalf("selection %s: %d objects, want %d, %v", selection, n, len(m.objects[selection]), failed())
		}
	}
	if len(j.Sinks()) != len(m.numbers) {
		t.Fatalf("sinks %q, want %d", j.Sinks(), len(m.numbers))
	}
}
