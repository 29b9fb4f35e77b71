// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// pod makes a Pod of namespace "ns" whose UID is its name.
func pod(name, version string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: version}}
	for _, c := range change {
		c(p)
	}
	return p
}

func uid(u types.UID) func(*corev1.Pod) { return func(p *corev1.Pod) { p.UID = u } }

func ownedBy(owner types.UID) func(*corev1.Pod) {
	yes := true
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "rs", UID: owner, Controller: &yes}}
	}
}

func key(name string) object.Key { return object.Key{Namespace: "ns", Name: name} }

// scripted is a source whose answers a test writes down beforehand. It notes what
// it is asked.
type scripted struct {
	t *testing.T

	mu      sync.Mutex
	asked   []string
	answers []any // of the calls, in order; each a list, a *fakeWatch or an error
}

type fakeList struct {
	version string
	objects []object.Object
	next    string // where the next page begins
}

func (s *scripted) next(asked string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, asked)
	if len(s.answers) == 0 {
		return errors.New("the script has ended")
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	return answer
}

func (s *scripted) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.asked, "\n")
}

func (s *scripted) list(_ context.Context, o client.ListOptions, each func(*frame) error) (string, string, error) {
	asked := fmt.Sprintf("list from %q", o.ResourceVersion)
	if o.PageSize > 0 {
		asked += fmt.Sprintf(" limit %d", o.PageSize)
	}
	if o.Continue != "" {
		asked += fmt.Sprintf(" continue %q", o.Continue)
	}
	switch answer := s.next(asked).(type) {
	case fakeList:
		for _, o := range answer.objects {
			f, err := frameOf(o)
			if err == nil {
				err = each(f)
			}
			if err != nil {
				return "", "", err
			}
		}
		return answer.version, answer.next, nil
	case error:
		return "", "", answer
	default:
		s.t.Errorf("the client lists, and the script has a %T", answer)
		return "", "", errors.New("wrong script")
	}
}

// frameOf is an object as it comes from a server.
func frameOf(o object.Object) (*frame, error) {
	e, raw, err := encode(o)
	if err != nil {
		return nil, err
	}
	f := new(frame)
	return f, f.read(e, raw)
}

func (s *scripted) watch(ctx context.Context, o client.WatchOptions) (stream, error) {
	asked := fmt.Sprintf("watch from %q", o.ResourceVersion)
	if o.SendInitialEvents {
		asked = fmt.Sprintf("watch list from %q", o.ResourceVersion)
	}
	if o.Timeout < minWatchTimeout || o.Timeout > 2*minWatchTimeout {
		s.t.Errorf("watch with a timeout of %s", o.Timeout)
	}
	switch answer := s.next(asked).(type) {
	case *fakeWatch:
		answer.ctx, answer.before = ctx, o.BeforeRead
		return answer, nil
	case error:
		return nil, answer
	default:
		s.t.Errorf("the client watches, and the script has a %T", answer)
		return nil, errors.New("wrong script")
	}
}

// fakeWatch sends what a test puts into it, and then its end.
type fakeWatch struct {
	ctx     context.Context
	events  chan fakeEvent
	before  func() // called before each read
	gzipped bool
}

type fakeEvent struct {
	kind string
	o    object.Object
	err  error
}

// watching returns a watch that sends events and then stays open, until a test
// ends it.
func watching(events ...fakeEvent) *fakeWatch {
	w := &fakeWatch{events: make(chan fakeEvent, 1000)}
	for _, e := range events {
		w.events <- e
	}
	return w
}

func (w *fakeWatch) next() (string, *frame, error) {
	if len(w.events) == 0 {
		w.before()
	}
	select {
	case e, ok := <-w.events:
		if !ok {
			return "", nil, io.EOF
		}
		if e.err != nil {
			return "", nil, e.err
		}
		f, err := frameOf(e.o)
		return e.kind, f, err
	case <-w.ctx.Done():
		return "", nil, w.ctx.Err()
	}
}

// compressing returns a watch that the server compresses.
func compressing(events ...fakeEvent) *fakeWatch {
	w := watching(events...)
	w.gzipped = true
	return w
}

func (w *fakeWatch) close() error { return nil }

func (w *fakeWatch) compressed() bool { return w.gzipped }

func added(p *corev1.Pod) fakeEvent    { return fakeEvent{kind: wire.Added, o: p} }
func modified(p *corev1.Pod) fakeEvent { return fakeEvent{kind: wire.Modified, o: p} }
func deleted(p *corev1.Pod) fakeEvent  { return fakeEvent{kind: wire.Deleted, o: p} }
func failing(err error) fakeEvent      { return fakeEvent{err: err} }

func bookmark(version string) fakeEvent {
	return fakeEvent{kind: wire.Bookmark, o: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}}
}

// allSent is the bookmark that ends the first events of a watch list.
func allSent(version string) fakeEvent {
	e := bookmark(version)
	e.o.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return e
}

var (
	errExpired       = apierrors.NewResourceExpired("too old resource version")
	errNoWatchList   = apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	errNoConnection  = errors.New("connection reset")
	errTooLarge      = tooLarge()
	podResource      = schema.GroupResource{Resource: "pods"}
	errForbiddenList = apierrors.NewForbidden(podResource, "", errors.New("no"))
)

// tooLarge is what a server answers that is asked for a version of its future.
func tooLarge() error {
	err := apierrors.NewTimeoutError("Too large resource version: 9, current: 1", 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	return err
}

// podContent is what an informer of Pods holds.
func podContent() *content {
	return &content{gvk: corev1.SchemeGroupVersion.WithKind("Pod"), typ: reflect.TypeFor[*corev1.Pod](),
		new: func() object.Object { return new(corev1.Pod) }}
}

// newTestInformer returns an informer of Pods that reads from a script.
func newTestInformer(t *testing.T, answers ...any) (*scripted, SharedInformer[*corev1.Pod]) {
	s := &scripted{t: t, answers: answers}
	return s, SharedInformer[*corev1.Pod]{informer: newInformer("pods", s, podContent(), slog.New(slog.DiscardHandler))}
}

// start runs an informer until the test ends, and checks that nothing of it is
// left. It is for use in a synctest bubble, which fails where a goroutine stays.
func start[T object.Object](t *testing.T, i SharedInformer[T]) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- i.informer.run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// told collects what a handler is told, one line an event.
type told struct {
	mu    sync.Mutex
	lines []string
}

func (l *told) handler(e Event[*corev1.Pod]) {
	line := e.Kind.String() + " " + e.Key().Name
	switch e.Kind {
	case Added:
		line += " " + string(e.New.Meta().Version)
	case Deleted:
		line += " " + string(e.Old.Meta().Version)
	default:
		line += " " + string(e.Old.Meta().Version) + "→" + string(e.New.Meta().Version)
	}
	if e.Initial {
		line += " initial"
	}
	if e.Stale {
		line += " stale"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *told) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Objects of a first state come in no particular order.
	first := 0
	for first < len(l.lines) && strings.HasSuffix(l.lines[first], " initial") {
		first++
	}
	slices.Sort(l.lines[:first])
	text := strings.Join(l.lines, "\n")
	l.lines = nil
	return text
}

func contents(i SharedInformer[*corev1.Pod]) string {
	var all []string
	for key, item := range i.All() {
		all = append(all, key.Name+"@"+string(item.Meta().Version))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n%s\nwant:\n%s", what, got, want)
	}
}

// newInformerOf returns an informer of Pods that reads from a source.
func newInformerOf(s source) SharedInformer[*corev1.Pod] {
	return SharedInformer[*corev1.Pod]{informer: newInformer("pods", s, podContent(), slog.New(slog.DiscardHandler))}
}

// historySource sends what follows a version, in each watch; of a watch list, with -1.
type historySource struct {
	scripted
	from func(after int) []fakeEvent
}

func (s *historySource) watch(ctx context.Context, o client.WatchOptions) (stream, error) {
	after := -1
	if !o.SendInitialEvents {
		var err error
		if after, err = strconv.Atoi(o.ResourceVersion); err != nil {
			return nil, err
		}
	}
	w := watching(s.from(after)...)
	w.ctx, w.before = ctx, o.BeforeRead
	return w, nil
}
