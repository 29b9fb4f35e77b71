// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package horizontalpodautoscaler

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

// TestEverySizeThatAServerHadKeepsTheRulesOfBehavior runs targets beside each other. Their metric,
// their bounds and their rules change at random, and the controller is killed after some of its writes
// of a size. Every size that a target had, at every resourceVersion, must be one that the rules allow.
func TestEverySizeThatAServerHadKeepsTheRulesOfBehavior(t *testing.T) {
	const targets, steps, lives = 8, 15, 3
	cluster := shared.Get(t)
	l := newLives(t, cluster.Restricted(t, Rights()), rand.Uint64())
	eyes := managertest.Run(t, cluster.Config)
	for range targets {
		l.add(cluster.Namespace(t), eyes)
	}
	l.start()
	for range lives {
		for range steps / lives {
			for _, s := range l.stories {
				s.happen()
			}
			for _, s := range l.stories {
				s.await()
			}
		}
		l.killAfterTheNextSize()
	}
	l.process.Stop()
	sizes, kills := 0, l.kills
	for _, s := range l.stories {
		sizes += s.check()
	}
	if sizes < targets || kills == 0 {
		t.Errorf("%d changes of a size and %d kills show nothing", sizes, kills)
	}
	t.Logf("%d changes of a size were allowed, and %d processes were killed", sizes, kills)
}

// lives are processes of the controller, one after the other. Each has one worker, so that the clock
// tells for which run a request is sent.
type lives struct {
	t       *testing.T
	config  *rest.Config
	random  *rand.Rand
	stories []*story
	process *managertest.Process
	next    http.RoundTripper
	kills   int

	mu      sync.Mutex
	now     time.Time     // when the present run began
	doomed  bool          // the process is to be killed after its next write of a size
	cut     chan struct{} // closed when that write has been carried out
	severed bool          // no request reaches the server
}

func newLives(t *testing.T, config *rest.Config, seed uint64) *lives {
	t.Helper()
	t.Logf("seed %d", seed)
	l := &lives{t: t, config: rest.CopyConfig(config), random: rand.New(rand.NewPCG(seed, 1))}
	l.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		l.next = next
		return l
	})
	return l
}

// start starts a process.
func (l *lives) start() {
	l.t.Helper()
	l.mu.Lock()
	l.severed, l.doomed, l.cut = false, false, make(chan struct{})
	l.mu.Unlock()
	o := Defaults()
	o.Workers, o.Period, o.Tolerance = 1, time.Second, 0
	l.process = managertest.Run(l.t, l.config, func(mgr *manager.Manager) (manager.Runnable, error) {
		return build(controller.Host(mgr), o, l.clock)
	})
}

// clock is the clock of the controller, which reads it once in a run. Wall time is what a history
// keeps.
func (l *lives) clock() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = time.Now().Round(0)
	return l.now
}

// killAfterTheNextSize kills the process between a write of a size and that of the status, and starts
// another one.
func (l *lives) killAfterTheNextSize() {
	l.t.Helper()
	l.mu.Lock()
	l.doomed = true
	cut := l.cut
	l.mu.Unlock()
	controlplanetest.Eventually(l.t, "a write of a size", func() bool {
		select {
		case <-cut:
			return true
		default:
		}
		// A target that is below its bounds is scaled at once, whatever its rules are.
		s := l.stories[l.random.IntN(len(l.stories))]
		s.edit(func(spec *autoscalingv2.HorizontalPodAutoscalerSpec) { s.bounds(spec, 1+l.random.Int32N(20)) })
		s.await()
		return false
	})
	l.process.Kill()
	l.kills++
	l.start()
}

var errSevered = errors.New("the process is killed")

// isScale matches the paths of a scale, and isMetric those of a metric.
var (
	isScale  = regexp.MustCompile(`/namespaces/([^/]+)/deployments/web/scale$`)
	isMetric = regexp.MustCompile(`^/apis/external\.metrics\.k8s\.io/v1beta1/namespaces/([^/]+)/queue$`)
)

// RoundTrip answers requests for the metric, and notes what the controller reads and writes.
func (l *lives) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	severed, now := l.severed, l.now
	l.mu.Unlock()
	switch metric, scale := isMetric.FindStringSubmatch(r.URL.Path), isScale.FindStringSubmatch(r.URL.Path); {
	case severed:
		return nil, errSevered
	case metric != nil:
		return l.story(metric[1]).answer(r, now)
	case scale != nil && r.Method == http.MethodPut:
		return l.resize(r, l.story(scale[1]), now)
	}
	return l.next.RoundTrip(r)
}

// resize carries out a write of a size, after which the process may be cut off.
func (l *lives) resize(r *http.Request, s *story, now time.Time) (*http.Response, error) {
	specs := s.inForce()
	response, err := l.next.RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	s.resized(now, specs)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.doomed && !l.severed {
		l.severed = true
		close(l.cut)
		return nil, errors.Join(errSevered, response.Body.Close())
	}
	return response, nil
}

func (l *lives) story(namespace string) *story {
	return l.stories[slices.IndexFunc(l.stories, func(s *story) bool { return s.key.Namespace == namespace })]
}

// story is what happens to one target.
type story struct {
	t           *testing.T
	lives       *lives
	key         object.Key
	autoscalers client.Typed[*autoscalingv2.HorizontalPodAutoscaler]

	mu      sync.Mutex
	metric  int32
	specs   []*autoscalingv2.HorizontalPodAutoscaler // each that there was
	seen    int                                      // the newest that the controller is known to have read
	truth   past
	resizes []resize
	sizes   []int32 // that the target had, at every resourceVersion
}

// resize is a write of a size.
type resize struct {
	at    time.Time
	specs []*autoscalingv2.HorizontalPodAutoscaler // of which the controller has read one
	known past                                     // when it was made
}

// add creates a Deployment with its HorizontalPodAutoscaler.
func (l *lives) add(namespace string, eyes *managertest.Process) {
	l.t.Helper()
	t, cluster := l.t, shared.Get(l.t)
	s := &story{
		t: t, lives: l, key: object.Key{Namespace: namespace, Name: "web"}, metric: 3,
		autoscalers: client.For[*autoscalingv2.HorizontalPodAutoscaler](cluster.Client),
	}
	labels := map[string]string{"app": "web"}
	if _, err := client.For[*appsv1.Deployment](cluster.Client).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web"}}},
		}},
	}); err != nil {
		t.Fatal(err)
	}
	s.truth.sizes = []recommendation{{time.Now().Round(0), 3}}
	hpa := autoscaler(1, 10, func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
		hpa.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: "web"}
		hpa.Spec.Metrics = []autoscalingv2.MetricSpec{queue("1")}
		hpa.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: s.rules(nil), ScaleDown: s.rules(nil)}
	})
	s.specs = []*autoscalingv2.HorizontalPodAutoscaler{hpa}
	if _, err := s.autoscalers.Create(t.Context(), hpa); err != nil {
		t.Fatal(err)
	}
	informer := cache.Informer[*appsv1.Deployment](eyes, cache.InNamespace(namespace))
	_, err := informer.AddHandler(func(e cache.Event[*appsv1.Deployment]) {
		d, err := e.Item().Object()
		if err != nil {
			t.Error(err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if n := *d.Spec.Replicas; len(s.sizes) == 0 || s.sizes[len(s.sizes)-1] != n {
			s.sizes = append(s.sizes, n)
		}
	}, cache.HandlerOptions{Name: namespace, EveryStep: true})
	if err != nil {
		t.Fatal(err)
	}
	controlplanetest.Eventually(t, "the watch has the first size", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.sizes) > 0
	})
	l.stories = append(l.stories, s)
}

// rules draws rules of one direction. They look back no further than those before: of what no rule
// looks back on, nothing is remembered.
func (s *story) rules(before *autoscalingv2.HPAScalingRules) *autoscalingv2.HPAScalingRules {
	r := s.lives.random
	window, period := int32(3600), int32(1800)
	if before != nil {
		window, period = *before.StabilizationWindowSeconds, 0
		for _, p := range before.Policies {
			period = max(period, p.PeriodSeconds)
		}
	}
	one := func(all ...int32) int32 { return all[r.IntN(len(all))] }
	rules := &autoscalingv2.HPAScalingRules{
		StabilizationWindowSeconds: new(min(window, one(0, 0, 0, 1, 2, 3600))), SelectPolicy: new(autoscalingv2.MaxChangePolicySelect),
	}
	switch r.IntN(8) {
	case 0:
		*rules.SelectPolicy = autoscalingv2.DisabledPolicySelect
	case 1, 2:
		*rules.SelectPolicy = autoscalingv2.MinChangePolicySelect
	}
	for range 1 + r.IntN(3) {
		policy := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: one(1, 2, 5), PeriodSeconds: min(period, one(1, 1, 2, 1800))}
		if r.IntN(2) == 0 {
			policy.Type, policy.Value = autoscalingv2.PercentScalingPolicy, one(10, 50, 100)
		}
		rules.Policies = append(rules.Policies, policy)
	}
	return rules
}

// bounds draws bounds of which the lower one is least or more.
func (s *story) bounds(spec *autoscalingv2.HorizontalPodAutoscalerSpec, least int32) {
	*spec.MinReplicas = least
	spec.MaxReplicas = least + 1 + s.lives.random.Int32N(20)
}

// happen changes the metric, and something in the spec.
func (s *story) happen() {
	s.t.Helper()
	r := s.lives.random
	s.mu.Lock()
	s.metric = r.Int32N(26)
	s.mu.Unlock()
	switch r.IntN(8) {
	case 0, 1:
		s.edit(func(spec *autoscalingv2.HorizontalPodAutoscalerSpec) { s.bounds(spec, 1+r.Int32N(6)) })
	case 2:
		s.edit(func(spec *autoscalingv2.HorizontalPodAutoscalerSpec) {
			spec.Behavior.ScaleUp, spec.Behavior.ScaleDown = s.rules(spec.Behavior.ScaleUp), s.rules(spec.Behavior.ScaleDown)
		})
	default: // The metric alone: the same rules, for another run.
		s.edit(func(spec *autoscalingv2.HorizontalPodAutoscalerSpec) {
			spec.Metrics[0].External.Metric.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"run": fmt.Sprint(len(s.specs))}}
		})
	}
}

// edit changes the spec as a user does. The controller runs for it.
func (s *story) edit(change func(*autoscalingv2.HorizontalPodAutoscalerSpec)) {
	s.t.Helper()
	s.mu.Lock()
	next := s.specs[len(s.specs)-1].DeepCopy()
	change(&next.Spec)
	s.specs = append(s.specs, next)
	s.mu.Unlock()
	patch, err := client.MergePatch(map[string]any{"spec": next.Spec})
	if err == nil {
		_, err = s.autoscalers.Patch(s.t.Context(), s.key, patch)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// await waits until the controller has followed the newest spec, or is cut off.
func (s *story) await() {
	s.t.Helper()
	controlplanetest.Eventually(s.t, "a run with the newest spec", func() bool {
		hpa, err := s.autoscalers.Get(s.t.Context(), s.key)
		if err != nil {
			s.t.Fatal(err)
		}
		if is := hpa.Status.ObservedGeneration; is == nil || *is != hpa.Generation {
			s.lives.mu.Lock()
			defer s.lives.mu.Unlock()
			return s.lives.severed
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen = len(s.specs) - 1
		return true
	})
}

// answer is the metric, which is what the run that reads it recommends.
func (s *story) answer(r *http.Request, now time.Time) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.truth.recommendations = append(s.truth.recommendations, recommendation{now, s.metric})
	server := metricsServer{values: map[string]string{r.URL.Path: fmt.Sprintf(`{"items":[{"metricName":"queue","value":"%d"}]}`, s.metric)}}
	return server.RoundTrip(r)
}

// inForce returns the specs of which the controller may have read one.
func (s *story) inForce() []*autoscalingv2.HorizontalPodAutoscaler {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.specs[s.seen:])
}

// resized notes a write of a size, with what had happened before it.
func (s *story) resized(now time.Time, specs []*autoscalingv2.HorizontalPodAutoscaler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resizes = append(s.resizes, resize{at: now, specs: specs, known: past{recommendations: slices.Clone(s.truth.recommendations)}})
}

// check judges every size that the target had, and returns how many changes there were.
func (s *story) check() int {
	s.t.Helper()
	controlplanetest.Eventually(s.t, "the watch has every write", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.sizes) > len(s.resizes)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sizes) != len(s.resizes)+1 {
		s.t.Fatalf("%s had the sizes %d, and the controller wrote %d", s.key, s.sizes, len(s.resizes))
	}
	for i, made := range s.resizes {
		from, to := s.sizes[i], s.sizes[i+1]
		made.known.sizes = s.truth.sizes
		var wrong []string
		for _, hpa := range made.specs {
			if why := made.known.judgeWithin(hpa, made.at, from, to); why != "" {
				wrong = append(wrong, fmt.Sprintf("%s by %+v", why, hpa.Spec))
			}
		}
		if len(wrong) == len(made.specs) {
			s.t.Errorf("%s: change %d at %s from %d to %d:\n%s\nrecommendations %v\nsizes %v", s.key, i, made.at, from, to,
				strings.Join(wrong, "\n"), made.known.recommendations, made.known.sizes)
		}
		s.truth.sizes = append(s.truth.sizes, recommendation{made.at, to})
	}
	return len(s.resizes)
}

// judgeWithin is judge for a target that may be outside of its bounds: then the next size is the bound.
func (p *past) judgeWithin(hpa *autoscalingv2.HorizontalPodAutoscaler, now time.Time, from, to int32) string {
	least, most := *hpa.Spec.MinReplicas, hpa.Spec.MaxReplicas
	if from > most && to == most || from < least && to == least {
		return ""
	}
	if from > most || from < least {
		return "it was outside of the bounds, and is at none of them"
	}
	return p.judge(hpa, now, from, to)
}
