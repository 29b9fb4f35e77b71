// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package traces_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	trace "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/traces"
	"github.com/setpoint-io/setpoint/workqueue"
)

// receiver is an OTLP receiver without a network.
type receiver struct {
	t  *testing.T
	mu sync.Mutex
	// answer, if it is set, answers instead of taking the spans.
	answer   func(*http.Request) (*http.Response, error)
	requests []*collector.ExportTraceServiceRequest
	posts    int
}

func (r *receiver) RoundTrip(q *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.posts++
	answer := r.answer
	r.mu.Unlock()
	if answer != nil {
		return answer(q)
	}
	body, err := io.ReadAll(q.Body)
	if err == nil && q.Header.Get("Content-Encoding") == "gzip" {
		var unpacked io.Reader
		if unpacked, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
			body, err = io.ReadAll(unpacked)
		}
	}
	var of collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &of)
	}
	if err != nil || q.Header.Get("Content-Type") != "application/x-protobuf" {
		r.t.Errorf("a batch cannot be read: %v, headers %v", err, q.Header)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, &of)
	return answered(http.StatusOK, nil), nil
}

func (r *receiver) setAnswer(answer func(*http.Request) (*http.Response, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// spans returns the spans that have arrived.
func (r *receiver) spans() (all []*trace.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.requests {
		for _, of := range q.ResourceSpans {
			for _, in := range of.ScopeSpans {
				all = append(all, in.Spans...)
			}
		}
	}
	return all
}

func answered(code int, body []byte) *http.Response {
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}
}

// hangs answers when the caller has given up.
func hangs(q *http.Request) (*http.Response, error) {
	<-q.Context().Done()
	return nil, q.Context().Err()
}

func refuses(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }

// scene is an exporter that runs, its record, its receiver and its log.
type scene struct {
	*traces.Exporter
	record *runs.Record
	to     *receiver
	log    bytes.Buffer
	stop   func()
}

// newScene starts an exporter. It has to be called in a bubble.
func newScene(t *testing.T, config traces.Config) *scene {
	t.Helper()
	s := &scene{to: &receiver{t: t}}
	config.Transport = s.to
	config.Log = slog.New(slog.NewTextHandler(&s.log, nil))
	if config.Endpoint == "" {
		config.Endpoint = "http://collector:4318/v1/traces"
	}
	var err error
	if s.Exporter, err = traces.New(config); err != nil {
		t.Fatal(err)
	}
	if s.record, err = runs.New(runs.LeastBytes); err != nil {
		t.Fatal(err)
	}
	s.Observe(s.record)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	s.stop = func() { cancel(); <-ended }
	t.Cleanup(s.stop)
	return s
}

var (
	web    = object.Key{Namespace: "shop", Name: "web"}
	set    = runs.Object{Group: "apps", Kind: "ReplicaSet", Namespace: "shop", Name: "web-6f7", UID: "u1"}
	setKey = object.Key{Namespace: "shop", Name: "web-6f7"}
)

// addRuns adds runs without a cause that ended alike.
func (s *scene) addRuns(n int) {
	loop := s.record.Loop("deployment", "apps", "Deployment")
	for range n {
		runs.Add(loop, web, &runs.Ended{Began: time.Now(), Outcome: runs.Done})
	}
}

// causesOf returns the update of an object as the cause of a run.
func causesOf(t *testing.T, of runs.Object, version string) workqueue.Causes {
	t.Helper()
	queue := workqueue.New(workqueue.Options[object.Key]{})
	t.Cleanup(queue.ShutDown)
	queue.AddWith(workqueue.Add{Cause: workqueue.Cause{Source: "sets", Verb: workqueue.Updated, Version: version, Ref: of.Ref()}}, of.Ref().Key)
	item, _ := queue.Get()
	return item.Causes
}

func textOf(attributes []*common.KeyValue, key string) string {
	for _, a := range attributes {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

// The span of a run has what the record has, and links to the run that wrote the object, also when that one ends later.
func TestTheSpanOfARunHasItsWritesAndLinksToItsCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, traces.Config{Gzip: true, Resource: map[string]string{"service.name": "shop-operator"}})
		began := time.Now()
		runs.Add(s.record.Loop("replicaset", "apps", "ReplicaSet"), setKey, &runs.Ended{
			Causes: causesOf(t, set, "4711"), Began: began.Add(time.Millisecond), Took: time.Millisecond, Attempt: 2, Queued: 3 * time.Millisecond,
			Outcome: runs.Failed, Error: "pods is forbidden \xff", Writes: []runs.Write{{Verb: "create", Object: runs.Object{Kind: "Pod", Namespace: "shop", Name: "web-6f7-a"}, Code: 403}},
			Reasons: []runs.Reason{{Code: "QuotaExceeded", Text: "no room"}},
		})
		runs.Add(s.record.Loop("deployment", "apps", "Deployment"), web, &runs.Ended{Began: began, Took: 5 * time.Millisecond, Outcome: runs.Done,
			Writes: []runs.Write{{Verb: "create", Object: set, Version: "4711", Manager: "setpoint"}}})
		time.Sleep(traces.DefaultDelay)
		synctest.Wait()

		spans := s.to.spans()
		if len(spans) != 2 {
			t.Fatalf("%d spans, want 2", len(spans))
		}
		of, by := spans[0], spans[1]
		if of.Name != "replicaset" || of.StartTimeUnixNano != uint64(began.Add(time.Millisecond).UnixNano()) || of.EndTimeUnixNano-of.StartTimeUnixNano != 1e6 {
			t.Errorf("the span is %v", of)
		}
		for key, want := range map[string]string{
			"setpoint.key": "shop/web-6f7", "setpoint.object.kind": "ReplicaSet", "setpoint.outcome": "error", "setpoint.attempt": "int_value:2",
			"setpoint.wait.queue_us": "3000", "setpoint.reasons": "QuotaExceeded", "setpoint.run": "int_value:1", "setpoint.causes": "4711",
		} {
			if got := textOf(of.Attributes, key); !strings.Contains(got, want) {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
		}
		if of.Status.GetCode() != trace.Status_STATUS_CODE_ERROR || of.Status.Message != "pods is forbidden \uFFFD" || by.Status.GetCode() != trace.Status_STATUS_CODE_UNSET {
			t.Errorf("the states are %v and %v", of.Status, by.Status)
		}
		if len(of.Events) != 1 || of.Events[0].Name != "create" || !strings.Contains(textOf(of.Events[0].Attributes, "setpoint.code"), "403") {
			t.Errorf("the events are %v", of.Events)
		}
		if len(by.Events) != 1 || !strings.Contains(textOf(by.Events[0].Attributes, "setpoint.version"), "4711") {
			t.Errorf("the events are %v", by.Events)
		}
		if len(of.Links) != 1 || !bytes.Equal(of.Links[0].SpanId, by.SpanId) || !bytes.Equal(of.Links[0].TraceId, by.TraceId) || len(by.SpanId) != 8 || len(by.TraceId) != 16 {
			t.Errorf("the links are %v, want one to %x of %x", of.Links, by.SpanId, by.TraceId)
		}
		if len(by.Links) != 0 {
			t.Errorf("a run without a cause has links: %v", by.Links)
		}
		if got := textOf(s.to.requests[0].ResourceSpans[0].Resource.Attributes, "service.name"); !strings.Contains(got, "shop-operator") {
			t.Errorf("the service is %q", got)
		}
	})
}

// Runs that the record counts in one entry have a span each.
func TestEachRunHasASpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, traces.Config{Batch: 10})
		s.addRuns(25)
		time.Sleep(traces.DefaultDelay)
		synctest.Wait()
		ids := map[string]bool{}
		for _, span := range s.to.spans() {
			ids[string(span.SpanId)] = true
		}
		if len(ids) != 25 || s.Stats() != (traces.Stats{Sent: 25}) || s.log.Len() > 0 {
			t.Errorf("%d spans, %+v; the log is\n%s", len(ids), s.Stats(), s.log.String())
		}
	})
}

// A batch that is full is sent at once.
func TestAFullBatchDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, traces.Config{Batch: 10, Delay: time.Hour})
		s.addRuns(10)
		synctest.Wait()
		if n := len(s.to.spans()); n != 10 {
			t.Errorf("%d spans, want 10", n)
		}
	})
}

// A receiver that is away or hangs delays no run: spans beyond the queue are dropped and counted, and the log has one
// line when that begins and one when it ends.
func TestAReceiverThatDoesNotTakeSpansDelaysNoRun(t *testing.T) {
	for name, answer := range map[string]func(*http.Request) (*http.Response, error){
		"away": refuses, "hangs": hangs,
		"busy": func(*http.Request) (*http.Response, error) { return answered(http.StatusServiceUnavailable, nil), nil },
		"sick": func(*http.Request) (*http.Response, error) { return answered(http.StatusBadRequest, nil), nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, traces.Config{Queue: 100, Batch: 10, Endpoint: "http://user:" + "hunter2" + "@collector:4318/v1/traces?token=hunter2"})
				s.to.setAnswer(answer)
				began := time.Now()
				s.addRuns(1000)
				if took := time.Since(began); took > 0 {
					t.Errorf("1000 runs took %v", took)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				s.to.setAnswer(nil)
				s.addRuns(5)
				time.Sleep(time.Minute)
				synctest.Wait()
				if got, want := s.Stats(), (traces.Stats{Sent: 5, Dropped: 1000}); got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
				log := s.log.String()
				if strings.Count(log, "spans cannot be exported") != 1 || strings.Count(log, "spans are exported again") != 1 ||
					strings.Count(log, "\n") != 2 || !strings.Contains(log, "dropped=1000") {
					t.Errorf("the log is\n%s", log)
				}
				if strings.Contains(log, "hunter2") {
					t.Errorf("the log has a secret:\n%s", log)
				}
			})
		})
	}
}

// A batch is tried again, so a receiver that is away for some seconds misses nothing.
func TestAReceiverThatComesBackMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, traces.Config{})
		s.to.setAnswer(func(*http.Request) (*http.Response, error) {
			busy := answered(http.StatusTooManyRequests, nil)
			busy.Header.Set("Retry-After", "20")
			return busy, nil
		})
		s.addRuns(3)
		time.Sleep(traces.DefaultDelay + time.Second)
		synctest.Wait()
		s.to.setAnswer(nil)
		time.Sleep(18 * time.Second)
		synctest.Wait()
		if n := len(s.to.spans()); n != 0 {
			t.Errorf("%d spans before the time that the receiver named", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got, want := s.Stats(), (traces.Stats{Sent: 3}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}

// The end sends what waits, and takes a second at most.
func TestTheEndSendsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, traces.Config{})
		s.addRuns(3)
		s.stop()
		if got, want := s.Stats(), (traces.Stats{Sent: 3}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, traces.Config{Batch: 1})
		s.to.setAnswer(hangs)
		s.addRuns(3)
		began := time.Now()
		s.stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the end took %v", took)
		}
		if s.Stats().Dropped != 3 || !strings.Contains(s.log.String(), "the newest runs have no spans") {
			t.Errorf("%+v; the log is\n%s", s.Stats(), s.log.String())
		}
	})
}

// A receiver may take a part of a batch.
func TestSpansThatTheReceiverRejectsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, traces.Config{})
		body, err := proto.Marshal(&collector.ExportTraceServiceResponse{PartialSuccess: &collector.ExportTracePartialSuccess{RejectedSpans: 2, ErrorMessage: "too old"}})
		if err != nil {
			t.Fatal(err)
		}
		s.to.setAnswer(func(*http.Request) (*http.Response, error) { return answered(http.StatusOK, body), nil })
		s.addRuns(3)
		s.stop()
		if got, want := s.Stats(), (traces.Stats{Sent: 1, Dropped: 2}); got != want || !strings.Contains(s.log.String(), "rejects spans") {
			t.Errorf("%+v, want %+v; the log is\n%s", got, want, s.log.String())
		}
	})
}

// The share of runs without a span.
func TestASamplerDropsItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none, some := newScene(t, traces.Config{Drop: 1}), newScene(t, traces.Config{Drop: 0.5})
		none.addRuns(100)
		some.addRuns(1000)
		none.stop()
		some.stop()
		if n := len(none.to.spans()); n != 0 {
			t.Errorf("%d spans with a sampler that drops all", n)
		}
		if n := len(some.to.spans()); n < 300 || n > 700 { // 500 on average, with a deviation of 16
			t.Errorf("%d spans of 1000 runs with a sampler that drops half", n)
		}
	})
}

// A span has 128 events at most, and says how many there were.
func TestARunWithManyWritesIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, traces.Config{})
		runs.Add(s.record.Loop("deployment", "apps", "Deployment"), web, &runs.Ended{Began: time.Now(), Outcome: runs.Failed,
			Error: strings.Repeat("x", 1<<20), Writes: make([]runs.Write, 500)})
		s.stop()
		spans := s.to.spans()
		if len(spans) != 1 || len(spans[0].Events) != 128 || spans[0].DroppedEventsCount != 372 || len(spans[0].Status.Message) > 2000 {
			t.Errorf("%d spans, want one with 128 events of 500", len(spans))
		}
	})
}
