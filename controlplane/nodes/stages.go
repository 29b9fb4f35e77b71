// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
	"sigs.k8s.io/yaml"
)

// stages are the Stages that a user has brought. What a Stage selects, what it
// waits for and what it writes is KWOK's own code; when it is done is ours.
type stages struct {
	sim      *simulation
	mu       sync.Mutex // KWOK compiles a Stage at its first use
	pods     lifecycle.Lifecycle
	nodes    lifecycle.Lifecycle
	renderer gotpl.Renderer
}

// playing is a Stage that was chosen for an object and is waited for.
type playing struct {
	stage *lifecycle.Stage
	due   time.Time
	step  int // the first of its steps that is not done
}

// loadStages reads and checks Stage files.
func loadStages(files []string, sim *simulation) (*stages, error) {
	s := &stages{sim: sim}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading stages: %w", err)
		}
		if err := s.add(data); err != nil {
			return nil, fmt.Errorf("stages in %s: %w", file, err)
		}
	}
	s.renderer = gotpl.NewRenderer(gotpl.FuncMap{
		"NodeIP":      func() string { return "" },
		"NodeName":    func() string { return "" },
		"NodePort":    func() int { return 0 },
		"NodeIPWith":  func(node string) string { return first(s.nodeIPs(node)) },
		"NodeIPsWith": s.nodeIPs,
		"PodIP":       func() (string, error) { return "", errors.New("PodIP does not know whose: use PodIPWith") },
		"PodIPWith": func(_ string, _ bool, _, name, namespace string) (string, error) {
			ips, err := s.podIPs(name, namespace)
			return first(ips), err
		},
		"PodIPsWith": func(_ string, _ bool, _, name, namespace string) ([]string, error) {
			return s.podIPs(name, namespace)
		},
	})
	return s, nil
}

// add takes the Stages of one file.
func (s *stages) add(data []byte) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		stage := &v1alpha1.Stage{}
		if err := yaml.UnmarshalStrict(document, stage); err != nil {
			return err
		}
		if stage.Kind == "" && stage.Name == "" {
			continue // nothing but comments
		}
		if err := s.addStage(stage); err != nil {
			return fmt.Errorf("stage %q: %w", stage.Name, err)
		}
	}
}

func (s *stages) addStage(external *v1alpha1.Stage) error {
	if external.Kind != v1alpha1.StageKind || external.APIVersion != v1alpha1.GroupVersion.String() {
		return fmt.Errorf("it is a %s %s and has to be a %s %s",
			external.APIVersion, external.Kind, v1alpha1.GroupVersion, v1alpha1.StageKind)
	}
	if external.Spec.Selector == nil {
		return errors.New("it has no spec.selector; an empty one, {}, selects everything")
	}
	stage, err := internalversion.ConvertToInternalStage(external)
	if err != nil {
		return err
	}
	for _, step := range stage.Spec.Steps {
		if step.Apply != nil {
			return errors.New("steps that apply other objects are not supported here")
		}
		if step.Patch != nil && step.Patch.Impersonation != nil {
			return errors.New("steps that impersonate a user are not supported here")
		}
	}
	ref := stage.Spec.ResourceRef
	switch {
	case ref.APIGroup == "v1" && ref.Kind == "Pod":
		if err := compile(stage, &corev1.Pod{}); err != nil {
			return err
		}
		s.pods = append(s.pods, lifecycle.NewStage(stage))
	case ref.APIGroup == "v1" && ref.Kind == "Node":
		if err := compile(stage, &corev1.Node{}); err != nil {
			return err
		}
		s.nodes = append(s.nodes, lifecycle.NewStage(stage))
	default:
		return fmt.Errorf("it is for %s %s; only v1 Pod and v1 Node are simulated", ref.APIGroup, ref.Kind)
	}
	return nil
}

// playPod plays a Pod by the Stage that selects it, if one does.
func (s *stages) playPod(ctx context.Context, state *podState, pod *corev1.Pod) (wake time.Time, played bool, err error) {
	if len(s.pods) == 0 {
		return time.Time{}, false, nil
	}
	about := &lifecycle.Event{Labels: pod.Labels, Annotations: pod.Annotations, Data: pod}
	state.stage, err = s.choose(ctx, s.pods, about, state.stage)
	if err != nil || state.stage == nil {
		return time.Time{}, false, err
	}
	if due := state.stage.due; time.Now().Before(due) {
		return due, true, nil
	}
	api := s.sim.client.CoreV1().Pods(pod.Namespace)
	changed, err := s.do(state.stage, pod.Finalizers, pod, actions{
		event: func(e podEvent) { s.sim.event(ctx, reference("Pod", pod), e) },
		remove: func() error {
			return api.Delete(ctx, pod.Name, metav1.DeleteOptions{
				GracePeriodSeconds: new(int64(0)),
				Preconditions:      &metav1.Preconditions{UID: &pod.UID},
			})
		},
		patch: func(kind types.PatchType, data []byte, subresources ...string) (bool, error) {
			result, err := api.Patch(ctx, pod.Name, kind, data, metav1.PatchOptions{}, subresources...)
			if err != nil {
				return false, err
			}
			s.trim(result)
			s.sim.store.updatePod(state, result)
			return newer(result, pod), nil
		},
	})
	return s.after(&state.stage, changed, err)
}

// playNode plays the status of a Node by the Stage that selects it, if one does.
func (s *stages) playNode(ctx context.Context, state *nodeState, node *corev1.Node) (wake time.Time, played bool, err error) {
	if len(s.nodes) == 0 {
		return time.Time{}, false, nil
	}
	about := &lifecycle.Event{Labels: node.Labels, Annotations: node.Annotations, Data: node}
	state.stage, err = s.choose(ctx, s.nodes, about, state.stage)
	if err != nil || state.stage == nil {
		return time.Time{}, false, err
	}
	if due := state.stage.due; time.Now().Before(due) {
		return due, true, nil
	}
	api := s.sim.client.CoreV1().Nodes()
	changed, err := s.do(state.stage, node.Finalizers, node, actions{
		event:  func(e podEvent) { s.sim.event(ctx, reference("Node", node), e) },
		remove: func() error { return api.Delete(ctx, node.Name, metav1.DeleteOptions{}) },
		patch: func(kind types.PatchType, data []byte, subresources ...string) (bool, error) {
			result, err := api.Patch(ctx, node.Name, kind, data, metav1.PatchOptions{}, subresources...)
			if err != nil {
				return false, err
			}
			result.ManagedFields = nil
			s.sim.store.updateNode(state, result)
			return newer(result, node), nil
		},
	})
	return s.after(&state.stage, changed, err)
}

// choose returns the Stage that was chosen before for as long as it selects the
// object, so that a change of something else does not start its delay again; else
// another that does, by weight; else nil.
func (s *stages) choose(ctx context.Context, from lifecycle.Lifecycle, about *lifecycle.Event, was *playing) (*playing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	possible, err := from.ListAllPossible(ctx, about)
	if err != nil {
		return nil, fmt.Errorf("selecting a stage: %w", err)
	}
	if len(possible) == 0 {
		return nil, nil
	}
	for _, stage := range possible {
		if was != nil && was.stage == stage {
			return was, nil
		}
	}
	stage, err := lifecycle.Lifecycle(possible).Match(ctx, about)
	if err != nil || stage == nil {
		return nil, err
	}
	now := time.Now()
	delay, _, err := stage.Delay(ctx, about, now)
	if err != nil {
		return nil, fmt.Errorf("delay of stage %s: %w", stage.Name(), err)
	}
	return &playing{stage: stage, due: now.Add(delay)}, nil
}

// actions are what a Stage can do to an object.
type actions struct {
	event  func(podEvent)
	remove func() error
	patch  func(kind types.PatchType, data []byte, subresources ...string) (changed bool, err error)
}

// do does the steps of a Stage that are not done yet.
func (s *stages) do(p *playing, finalizers []string, object any, a actions) (changed bool, err error) {
	next, err := p.stage.DoSteps(p.step, finalizers, object, s.renderer,
		func(e *internalversion.StageEvent) error {
			a.event(podEvent{e.Type, e.Reason, e.Message})
			return nil
		},
		a.remove,
		func(patch *lifecycle.Patch) error {
			var subresources []string
			if patch.Subresource != "" {
				subresources = []string{patch.Subresource}
			}
			did, err := a.patch(patch.Type, patch.Data, subresources...)
			changed = changed || did
			return err
		},
		func(*lifecycle.Apply) error { return errors.ErrUnsupported }, // refused by addStage
	)
	switch {
	case err == nil:
		return changed, nil
	case apierrors.IsNotFound(err): // the watch will show it
		return false, nil
	}
	p.step = max(p.step, next)
	return changed, fmt.Errorf("stage %s: %w", p.stage.Name(), err)
}

// after forgets a Stage that has been played. If it has changed something, the object is
// handled again at once; if not, when something else changes it.
func (s *stages) after(p **playing, changed bool, err error) (wake time.Time, played bool, _ error) {
	if err != nil {
		return time.Time{}, true, err
	}
	*p = nil
	if changed {
		return time.Now(), true, nil
	}
	return time.Time{}, true, nil
}

func (s *stages) nodeIPs(name string) []string {
	if _, node, ok := s.sim.store.node(name); ok {
		return hostIPs(node)
	}
	return nil
}

func (s *stages) podIPs(name, namespace string) ([]string, error) {
	_, pod, node, ok := s.sim.store.pod(types.NamespacedName{Namespace: namespace, Name: name})
	if !ok {
		return nil, fmt.Errorf("pod %s/%s is not on a simulated node", namespace, name)
	}
	where, err := s.sim.store.network(pod, node)
	return where.podIPs, err
}

func first(of []string) string {
	if len(of) == 0 {
		return ""
	}
	return of[0]
}
