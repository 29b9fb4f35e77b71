// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/internal/announce"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// world is a cluster full of Pods, with a manager whose record of runs is full.
type world struct {
	*cluster
	manager    *process
	namespaces int
	pods       []string // one of each Deployment
	record     string   // figures of it, in words
}

func (w *world) namespaceOf(i int) string { return fmt.Sprint("shop-", i%w.namespaces) }
func (w *world) deployment(i int) string  { return fmt.Sprint("web-", i) }
func (w *world) pod(i int) string         { return w.pods[i] }

// populate starts a manager, which creates the Pods of Deployments. Its record begins full, with the runs of an earlier
// process for the same objects, so that what it records of these Deployments replaces older runs. Clients then write that
// every Pod is ready, as kubelets would.
func (b *explainBench) populate(ctx context.Context, c *cluster) (_ *world, err error) {
	w := &world{cluster: c, namespaces: b.namespaces, pods: make([]string, b.sets)}
	file := filepath.Join(c.dir, "runs")
	if err := fillFile(file, b.sets, b.replicas, w); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	w.manager, err = startProcess(c.dir, filepath.Join(b.bin, "setpoint"), append([]string{"manager", "--kubeconfig", c.kubeconfig,
		"--authentication-kubeconfig", c.kubeconfig, "--authorization-kubeconfig", c.kubeconfig, "--controllers", controllers,
		"--leader-elect=false", "--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(port), "--run-record-file", file}, b.flags...)...)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.manager.alive())
			w.manager.stop()
		}
	}()
	s, err := newScene(c, b.sets*b.replicas, 32)
	if err != nil {
		return nil, err
	}
	if err := w.createNamespaces(ctx, s); err != nil {
		return nil, err
	}
	pods, err := countPods(ctx, c.client)
	if err != nil {
		return nil, err
	}
	if err := s.each(ctx, b.sets, func(ctx context.Context, i int) error {
		labels := map[string]string{"app": w.deployment(i)}
		_, err := s.plain.AppsV1().Deployments(w.namespaceOf(i)).Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: w.deployment(i), Labels: labels},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(b.replicas)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template(labels),
			},
		}, metav1.CreateOptions{})
		return err
	}); err != nil {
		return nil, fmt.Errorf("creating Deployments: %w", err)
	}
	if err := pods.reach(ctx, b.sets*b.replicas, w.manager.alive); err != nil {
		return nil, err
	}
	if err := w.makeReady(ctx, s); err != nil {
		return nil, fmt.Errorf("writing that Pods are ready: %w", err)
	}
	if err := w.manager.idle(ctx); err != nil {
		return nil, err
	}
	return w, w.readRecord(ctx)
}

// createNamespaces makes the namespaces, and waits until Pods can be created in them.
func (w *world) createNamespaces(ctx context.Context, s *scene) error {
	return s.each(ctx, w.namespaces, func(ctx context.Context, i int) error {
		name := w.namespaceOf(i)
		_, err := s.plain.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		return poll(ctx, "the ServiceAccount of "+name, func() (bool, error) {
			_, err := s.plain.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return false, w.manager.alive()
			}
			return err == nil, err
		})
	})
}

// makeReady writes the status of every Pod, and keeps the name of one Pod of each Deployment.
func (w *world) makeReady(ctx context.Context, s *scene) error {
	list, err := s.plain.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		var of int
		if _, err := fmt.Sscanf(list.Items[i].Labels["app"], "web-%d", &of); err == nil && of < len(w.pods) {
			w.pods[of] = list.Items[i].Name
		}
	}
	return s.each(ctx, len(list.Items), func(ctx context.Context, i int) error {
		p := &list.Items[i]
		_, err := s.plain.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, []byte(readyPod), metav1.PatchOptions{}, "status")
		return err
	})
}

// readRecord notes what the manager's record has, and fails unless the record is full.
func (w *world) readRecord(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", w.kubeconfig)
	if err != nil {
		return err
	}
	at, err := announce.Find(ctx, w.client)
	if err != nil {
		return err
	}
	get, err := at.Pages(config)
	if err != nil {
		return err
	}
	code, body, err := get(ctx, "/debug/runs?format=json&limit=1")
	var page struct{ Stats runs.Stats }
	if err == nil && code == 200 {
		err = json.Unmarshal(body, &page)
	}
	s := page.Stats
	w.record = fmt.Sprintf("the record has %d of %d bytes, %d entries of an earlier process and %d runs of this one; %d entries were dropped",
		s.Bytes, s.Limit, s.Restored, s.Runs, s.Dropped)
	switch {
	case err != nil:
		return fmt.Errorf("reading the record: %w", err)
	case code != 200:
		return fmt.Errorf("reading the record: the manager answers %d", code)
	case s.Dropped == 0:
		return fmt.Errorf("the record is not full: %s; it needs more Deployments or Pods", w.record)
	}
	return nil
}

// fillFile makes the file of a full record, with runs that created the Pods of the Deployments' earlier ReplicaSets.
func fillFile(path string, sets, replicas int, w *world) error {
	record, err := runs.New(runs.DefaultBytes)
	if err != nil {
		return err
	}
	file, err := record.Open(path, nil)
	if err != nil {
		return err
	}
	defer file.Close()
	loop := record.Loop("replicaset-controller", "apps", "ReplicaSet")
	began := time.Now().Add(-time.Hour)
	version := 1
	for i := 0; record.Stats().Dropped == 0; i++ {
		of := i % sets
		set := object.Key{Namespace: w.namespaceOf(of), Name: fmt.Sprintf("%s-%d", w.deployment(of), i/sets)}
		run := runs.Ended{Began: began.Add(time.Duration(i) * time.Millisecond), Took: 5 * time.Millisecond, Outcome: runs.Done}
		for pod := range replicas {
			version++
			run.Writes = append(run.Writes, runs.Write{Verb: "create", Version: strconv.Itoa(version), Object: runs.Object{
				Kind: "Pod", Namespace: set.Namespace, Name: fmt.Sprintf("%s-%d", set.Name, pod), UID: "0c9a4c0e-5a3e-4f57-9d8f-1f2e3d4c5b6a"}})
		}
		runs.Add(loop, set, &run)
	}
	return nil
}

// profiled calls f, and writes a CPU profile of this process into a folder, unless its name is empty.
func profiled(dir string, f func() error) error {
	if dir == "" {
		return f()
	}
	file, err := os.Create(filepath.Join(dir, "explain-gather-cpu.pb.gz"))
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(err, file.Close())
	}
	err = f()
	pprof.StopCPUProfile()
	return errors.Join(err, file.Close())
}
