// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// startCase is about the times in which a large cluster has no manager: until a new one works, until another takes over from one that
// was killed, and until another takes over from one that ends in order.
var startCase = scaleCase{
	what: fmt.Sprintf("all controllers start, take over and hand over beside Pods of Deployments of %d, on a Node for each %d Pods",
		podsOfDeployment, podsOfNode),
	size:        50_000,
	controllers: []string{"*"},
	signs:       true,
	// Nodes of this case have no kubelet: none of them counts as silent. Without the other flags there is no node-ipam-controller.
	args: []string{"--allocate-node-cidrs", "--cluster-cidr", "10.128.0.0/10", "--leader-elect=true",
		"--node-monitor-grace-period", "24h", "--node-startup-grace-period", "24h"},
	prepare: createStandingCluster,
	measure: measureStart,
	lines: func(size int) []caseLine {
		return []caseLine{
			{name: "start-seconds-to-the-first-write", unit: "s", reading: "first", aim: aim{most: 0.5}},
			{name: fmt.Sprintf("start-seconds-to-all-synced-with-%d-pods", size), unit: "s", reading: "synced", aim: aim{most: 0.5}},
			{name: "start-cpu-until-at-rest", unit: "s", reading: "cpu", aim: aim{most: 0.5}},
			{name: "start-memory", unit: "MB", reading: "memory", aim: aim{most: 1. / 3}},
			{name: "start-memory-peak", unit: "MB", reading: "peak"},
			{name: "start-memory-standing-by", unit: "MB", reading: "standby"},
			{name: "start-crash-seconds-beyond-the-lease", unit: "s", reading: "crash", aim: aim{value: 1}},
			{name: "start-handover-seconds", unit: "s", reading: "handover", aim: aim{value: 0.5}},
		}
	},
}

const (
	podsOfDeployment = 50
	podsOfNode       = 10
)

func standingName(i int) string { return fmt.Sprint("standing-", i) }

// createStandingCluster makes what all turns start with: Nodes that are ready, and Deployments whose Pods are there and assigned to them.
func createStandingCluster(ctx context.Context, s *scene) error {
	nodes, deployments := max(1, s.size/podsOfNode), max(1, s.size/podsOfDeployment)
	err := s.each(ctx, nodes, func(ctx context.Context, i int) error {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", i)}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}
		_, err := s.plain.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("creating Nodes: %w", err)
	}
	replicas := int32(podsOfDeployment)
	err = s.each(ctx, deployments, func(ctx context.Context, i int) error {
		labels := map[string]string{"app": standingName(i)}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: standingName(i)}, Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels),
		}}
		d.Spec.Template.Spec.NodeName = fmt.Sprint("node-", i*podsOfDeployment/podsOfNode%nodes)
		_, err := s.plain.AppsV1().Deployments("default").Create(ctx, d, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("creating Deployments: %w", err)
	}
	settled := 0
	err = poll(ctx, "the Pods of all Deployments", func() (bool, error) {
		if err := pause(ctx, time.Second); err != nil {
			return false, fmt.Errorf("%d of %d Deployments have theirs: %w", settled, deployments, err)
		}
		list, err := s.plain.AppsV1().Deployments("default").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		settled = 0
		for i := range list.Items {
			if list.Items[i].Status.Replicas == replicas {
				settled++
			}
		}
		return settled >= deployments, s.aliveManager()
	})
	if err != nil {
		return err
	}
	return s.awaitNodes(ctx, nodes, func(n *corev1.Node) bool { return len(n.Spec.Taints) == 0 && n.Spec.PodCIDR != "" })
}

// measureStart measures one side in a cluster in which no manager runs, and leaves it as it was.
func measureStart(ctx context.Context, s *scene) (found readings, err error) {
	if err := s.forgetLease(ctx); err != nil {
		return nil, err
	}
	if err := s.createProbes(ctx); err != nil {
		return nil, err
	}
	found = readings{}
	if err := s.measureColdStart(ctx, found); err != nil {
		return nil, fmt.Errorf("the start: %w", err)
	}
	first := s.manager
	defer func() { first.stop() }()
	if err := s.removeProbes(ctx); err != nil {
		return nil, err
	}
	second, err := s.standBy(ctx)
	if err != nil {
		return nil, fmt.Errorf("standing by: %w", err)
	}
	defer func() { second.stop() }()
	if found["standby"], err = second.memory(); err != nil {
		return nil, err
	}
	if found["crash"], err = s.measureCrash(ctx, first, second); err != nil {
		return nil, fmt.Errorf("the takeover: %w", err)
	}
	s.manager = second
	third, err := s.standBy(ctx)
	if err != nil {
		return nil, fmt.Errorf("standing by once more: %w", err)
	}
	defer third.stop()
	found["handover"], err = s.measureHandover(ctx, second, third)
	return found, err
}

// measureColdStart starts the manager, with a Pod of a Deployment missing: its replacement is the first write of the workload.
func (s *scene) measureColdStart(ctx context.Context, found readings) (err error) {
	missing, err := s.removePod(ctx, 0)
	if err != nil {
		return err
	}
	defer missing.stop()
	began := time.Now()
	if s.manager, err = s.start(); err != nil {
		return err
	}
	endProfile := s.profiler.during(ctx, "cold")
	defer func() { err = errors.Join(err, endProfile()) }()
	replaced := make(chan error, 1)
	go func() {
		at, err := missing.replaced(ctx)
		found["first"] = at.Sub(began).Seconds()
		replaced <- err
	}()
	if err := errors.Join(s.awaitProbes(ctx), <-replaced); err != nil {
		return err
	}
	found["synced"] = time.Since(began).Seconds()
	if err := s.manager.calm(ctx); err != nil {
		return err
	}
	if found["cpu"], err = s.manager.cpu(); err != nil {
		return err
	}
	if found["peak"], err = s.manager.peakMemory(); err != nil {
		return err
	}
	found["memory"], err = s.manager.memory()
	return err
}

// standBy starts another manager of the same side, and waits until it is at rest.
func (s *scene) standBy(ctx context.Context) (*process, error) {
	p, err := s.start()
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, 3*time.Second); err != nil { // it has begun to read
		return nil, err
	}
	return p, p.calm(ctx)
}

// measureCrash kills the manager that leads, and returns how long after the end of its lease the other one replaces a Pod.
func (s *scene) measureCrash(ctx context.Context, leads, standsBy *process) (float64, error) {
	if err := leads.command.Process.Kill(); err != nil {
		return 0, err
	}
	<-leads.ended
	missing, err := s.removePod(ctx, 1)
	if err != nil {
		return 0, err
	}
	defer missing.stop()
	lease, err := s.plain.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	if lease.Spec.RenewTime == nil || lease.Spec.LeaseDurationSeconds == nil {
		return 0, fmt.Errorf("the Lease has no end: %v", lease.Spec)
	}
	expires := lease.Spec.RenewTime.Add(time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second)
	at, err := missing.replaced(ctx)
	return at.Sub(expires).Seconds(), errors.Join(err, standsBy.alive())
}

// measureHandover ends the manager that leads in order, and returns how long after the signal the other one replaces a Pod. The Pod is
// removed when the first manager has ended, so that it cannot replace it.
func (s *scene) measureHandover(ctx context.Context, leads, standsBy *process) (float64, error) {
	began := time.Now()
	if err := leads.command.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	select {
	case <-leads.ended:
	case <-ctx.Done():
		return 0, fmt.Errorf("the manager does not end: %w", ctx.Err())
	}
	s.notes = append(s.notes, fmt.Sprintf("the manager that was asked to end took %s", time.Since(began).Round(time.Millisecond)))
	missing, err := s.removePod(ctx, 2)
	if err != nil {
		return 0, err
	}
	defer missing.stop()
	at, err := missing.replaced(ctx)
	return at.Sub(began).Seconds(), errors.Join(err, standsBy.alive())
}

// missingPod is a Pod that was removed from a Deployment.
type missingPod struct {
	pods  watch.Interface
	began time.Time
}

// removePod removes a Pod of a Deployment, without grace: no kubelet would end it.
func (s *scene) removePod(ctx context.Context, deployment int) (*missingPod, error) {
	pods := s.plain.CoreV1().Pods("default")
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "app=" + standingName(deployment)})
	if err != nil {
		return nil, err
	}
	if len(list.Items) != podsOfDeployment {
		return nil, fmt.Errorf("%s has %d Pods, want %d", standingName(deployment), len(list.Items), podsOfDeployment)
	}
	watcher, err := pods.Watch(ctx, metav1.ListOptions{LabelSelector: "app=" + standingName(deployment), ResourceVersion: list.ResourceVersion})
	if err != nil {
		return nil, err
	}
	at := time.Now()
	now := int64(0)
	if err := pods.Delete(ctx, list.Items[0].Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		watcher.Stop()
		return nil, err
	}
	return &missingPod{watcher, at}, nil
}

// replaced waits until there is another Pod, and returns when that was.
func (m *missingPod) replaced(ctx context.Context) (time.Time, error) {
	for {
		select {
		case event, open := <-m.pods.ResultChan():
			if !open {
				return time.Time{}, errors.New("the watch of a Deployment's Pods has ended")
			}
			if event.Type == watch.Added {
				return time.Now(), nil
			}
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("waiting since %s for the replacement of a Pod: %w", time.Since(m.began).Round(time.Second), ctx.Err())
		}
	}
}

func (m *missingPod) stop() { m.pods.Stop() }

// leaseName is the Lease of both managers.
const leaseName = "kube-controller-manager"

// forgetLease removes the Lease that the turn before left, so that a start does not wait for its end.
func (s *scene) forgetLease(ctx context.Context) error {
	err := s.plain.CoordinationV1().Leases(metav1.NamespaceSystem).Delete(ctx, leaseName, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
