// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// podKey and podSeen are as those of Pods of a Deployment in a cluster: names of 40 bytes.
func podKey(i int) object.Key {
	return object.Key{Namespace: fmt.Sprintf("namespace-%03d", i%200), Name: fmt.Sprintf("some-deployment-name-%05d-6d4cf56db6-x%04d", i%1000, i/10)}
}

func podSeen(i, version int) Seen {
	s := Seen{UID: types.UID(fmt.Sprintf("%08x-9d1e-4b2a-8c3d-%012x", i*2654435761%(1<<32), i)), Version: fmt.Sprint(10_000_000 + version)}
	for b := range s.Digest {
		s.Digest[b] = byte(i >> (b % 4) * (b + version))
	}
	return s
}

const hundredThousand = 100_000

// large is a journal with 100,000 objects, on the disk.
func large(b *testing.B) *Journal {
	b.Helper()
	j, _, err := Open(filepath.Join(b.TempDir(), "journal"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = j.Close() })
	for first := 0; first < hundredThousand; first += 5000 {
		commit(b, j, func(batch *Batch) {
			for i := first; i < first+5000; i++ {
				batch.Seen("pods/v1", podKey(i*7919%hundredThousand), podSeen(i, i))
			}
		})
	}
	commit(b, j, func(batch *Batch) { batch.Version("pods/v1", "1") })
	return j
}

// BenchmarkCommit is of changes of objects, each with an event of 1 kB for one sink, in a
// journal with 100,000 objects.
func BenchmarkCommit(b *testing.B) {
	j := large(b)
	data := make([]byte, 1<<10)
	version := 0
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var batch Batch
			for b.Loop() {
				batch.Reset()
				for range n {
					version++
					at := version * 7919 % hundredThousand
					batch.Seen("pods/v1", podKey(at), podSeen(at, version))
					batch.Event("chat", "0123456789abcdef", data)
				}
				batch.Version("pods/v1", fmt.Sprint(version))
				if err := j.Commit(&batch); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := j.Ack("chat", waiting(b, j)...); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "changes/s")
		})
	}
}

// waiting returns the numbers of the events for chat.
func waiting(b *testing.B, j *Journal) (seqs []uint64) {
	b.Helper()
	entries, err := j.Next("chat", 0, hundredThousand)
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range entries {
		seqs = append(seqs, e.Seq)
	}
	return seqs
}

// BenchmarkCommitters is of commits of one change, by one goroutine and by many.
func BenchmarkCommitters(b *testing.B) {
	for _, n := range []int{1, 16} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			j := large(b)
			before := framesIn(b, j)
			work := make(chan int)
			var all sync.WaitGroup
			b.ResetTimer()
			for range n {
				all.Go(func() {
					var batch Batch
					for i := range work {
						batch.Reset()
						batch.Seen("pods/v1", podKey(i*7919%hundredThousand), podSeen(i, 1_000_000+i))
						if err := j.Commit(&batch); err != nil {
							b.Error(err)
						}
					}
				})
			}
			for i := range b.N {
				work <- i
			}
			close(work)
			all.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
			b.ReportMetric(float64(b.N)/float64(framesIn(b, j)-before), "commits/write")
		})
	}
}

func BenchmarkObjects(b *testing.B) {
	j := large(b)
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		seq, failed := j.Objects("pods/v1")
		n := 0
		for range seq {
			n++
		}
		if n != hundredThousand || failed() != nil {
			b.Fatal(n, failed())
		}
	}
}

// BenchmarkOpen is of files with 100,000 objects, and with 100,000 events of 1 kB besides.
func BenchmarkOpen(b *testing.B) {
	j := large(b)
	run := func(name string) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = j.Close()
				var err error
				if j, _, err = Open(j.path, Options{}); err != nil {
					b.Fatal(err)
				}
			}
			info, err := os.Stat(j.path)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(info.Size())/1e6, "MB")
			b.ReportMetric(float64(info.Size())/hundredThousand, "bytes/each")
		})
	}
	run("objects")
	data := make([]byte, 1<<10)
	for range hundredThousand / 1000 {
		commit(b, j, func(batch *Batch) {
			for range 1000 {
				batch.Event("chat", "0123456789abcdef", data)
			}
		})
	}
	run("objects and events")
	_ = j.Close()
}

// BenchmarkMemory opens a file with 100,000 objects in a process of its own, and says what
// that process has resident.
func BenchmarkMemory(b *testing.B) {
	j := large(b)
	_ = j.Close()
	for b.Loop() {
		out, err := child(b, taskMemory, j.path).Output()
		if err != nil {
			b.Skip(err)
		}
		var before, opened, read, anon float64
		if _, err := fmt.Sscan(string(out), &before, &opened, &read, &anon); err != nil {
			b.Skip(err, string(out))
		}
		b.ReportMetric(opened-before, "kB-open")
		b.ReportMetric(read-before, "kB-all-read")
		b.ReportMetric(anon, "kB-of-it-anonymous")
	}
}

func memory(path string) error {
	rss, anon, err := resident()
	if err != nil {
		return err
	}
	j, _, err := Open(path, Options{})
	if err != nil {
		return err
	}
	opened, _, _ := resident()
	seq, failed := j.Objects("pods/v1")
	for range seq { // reading is all
	}
	if err := failed(); err != nil {
		return err
	}
	read, all, _ := resident()
	fmt.Println(rss, opened, read, all-anon)
	return j.Close()
}

// resident returns what /proc says of this process, in kB.
func resident() (all, anonymous int, err error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(status)) {
		_, _ = fmt.Sscanf(line, "VmRSS: %d", &all)
		_, _ = fmt.Sscanf(line, "RssAnon: %d", &anonymous)
	}
	return all, anonymous, nil
}
