// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controlplane/internal/loopback"
	"github.com/setpoint-io/setpoint/controlplane/metrics"
	"github.com/setpoint-io/setpoint/workqueue"
)

// userAgent is who the simulation says it is, in audit logs and managed fields.
const userAgent = "setpoint-nodes"

// simulation is one run.
type simulation struct {
	Options
	client  kubernetes.Interface
	log     *slog.Logger
	queue   *workqueue.Queue[key]
	store   *store
	stages  *stages
	kubelet kubelet
	about   kubeletInfo  // set before the first Node is played
	waiting atomic.Int64 // Nodes that were not Ready yet
}

// Run simulates Nodes, and what is bound to them, until ctx ends; then it waits for
// all it has started and returns nil. It returns an error only for Options that it
// cannot work with, or if no port is free. An API server that cannot be reached, at the start or later, is
// waited for.
func Run(ctx context.Context, opts Options) error {
	opts, err := opts.withDefaults()
	if err != nil {
		return err
	}
	config := rest.CopyConfig(opts.Config)
	config.UserAgent = userAgent
	config.QPS = -1 // Workers limits what is under way
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("client of the simulated nodes: %w", err)
	}
	// The client's transport may live on in client-go's cache; its connections,
	// with two goroutines each, must not.
	defer utilnet.CloseIdleConnectionsFor(http.Transport)
	client, err := kubernetes.NewForConfigAndClient(config, http)
	if err != nil {
		return fmt.Errorf("client of the simulated nodes: %w", err)
	}

	s := &simulation{
		Options: opts,
		client:  client,
		log:     opts.Logger,
		store:   newStore(),
		kubelet: kubelet{grace: opts.Grace, backoff: opts.Backoff, maxBackoff: opts.MaxBackoff},
		queue: workqueue.New(workqueue.Options[key]{
			Name:    "nodes",
			Limiter: &workqueue.Exponential[key]{Base: firstWait, Max: lastWait},
		}),
	}
	if s.stages, err = loadStages(opts.StageFiles, s); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	if err := s.serve(ctx, &running); err != nil {
		return err
	}
	running.Go(func() {
		if !s.register(ctx) {
			return
		}
		// Pods come after Nodes: an address that a Pod has can be kept for it only
		// when the range of its Node is known.
		nodesListed := make(chan struct{})
		running.Go(func() { s.followNodes(ctx, sync.OnceFunc(func() { close(nodesListed) })) })
		select {
		case <-nodesListed:
		case <-ctx.Done():
			return
		}
		// Claims come before Pods too: a Pod would wait for a claim that only was not listed yet.
		if s.about.claims {
			s.store.withClaims()
			claimsListed := make(chan struct{})
			running.Go(func() { s.followClaims(ctx, sync.OnceFunc(func() { close(claimsListed) })) })
			select {
			case <-claimsListed:
			case <-ctx.Done():
				return
			}
		}
		if !s.followStorage(ctx, &running) {
			return
		}
		podsListed := make(chan struct{})
		running.Go(func() { s.followPods(ctx, sync.OnceFunc(func() { close(podsListed) })) })
		select {
		case <-podsListed:
		case <-ctx.Done():
			return
		}
		for range opts.Workers {
			running.Go(func() { s.work(ctx) })
		}
	})
	<-ctx.Done()
	s.queue.ShutDown()
	return nil
}

// serve starts the servers behind the API server: that of the kubelets and that of their
// metrics, as far as the Options have them.
func (s *simulation) serve(ctx context.Context, running *sync.WaitGroup) error {
	if s.Serving != nil {
		l, err := loopback.Listen(ctx, s.Serving)
		if err != nil {
			return fmt.Errorf("serving requests to the simulated nodes: %w", err)
		}
		s.about.port = loopback.Port(l)
		server := &kubeletServer{store: s.store, log: s.log, now: time.Now}
		running.Go(func() { server.serve(ctx, l) })
	}
	if s.Metrics == nil {
		return nil
	}
	var parts atomic.Int32 // that are not ready: the Nodes and their metrics
	parts.Store(2)
	ready := s.OnReady
	s.OnReady = func() {
		if parts.Add(-1) == 0 {
			ready()
		}
	}
	server, err := metrics.New(ctx, metrics.Options{
		Config: s.Config, Serving: *s.Metrics, Cluster: s.store, OnReady: s.OnReady, Logger: s.log,
	})
	if err != nil {
		return err
	}
	running.Go(func() { server.Run(ctx) })
	return nil
}

// register creates and removes Nodes in the API until the wanted ones exist, and tries
// again until that or until ctx ends.
func (s *simulation) register(ctx context.Context) bool {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		err := s.registerOnce(ctx)
		if ctx.Err() != nil {
			return false
		}
		if err == nil {
			return true
		}
		level := slog.LevelDebug
		if wait == firstWait {
			level = slog.LevelInfo
		}
		s.log.Log(ctx, level, "the simulated nodes cannot be registered yet; trying again until they are", "err", err)
		sleep(ctx, wait)
	}
}

func (s *simulation) registerOnce(ctx context.Context) error {
	// Not Discovery().ServerVersion: that takes no context, and would hold up the
	// end of Run for as long as a server is silent.
	data, err := s.client.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("reading the version of the API server: %w", err)
	}
	var server version.Info
	if err := json.Unmarshal(data, &server); err != nil {
		return fmt.Errorf("reading the version of the API server: %w", err)
	}
	s.about.version = server.GitVersion
	if s.about.claims, err = s.servesClaims(ctx); err != nil {
		return err
	}

	list, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	exists, waiting := map[string]bool{}, int64(0)
	for i := range list.Items {
		node := &list.Items[i]
		index, ours := nodeIndex(node.Name)
		if ours && simulated(node) && index >= s.Nodes {
			if err := s.unregister(ctx, node); err != nil {
				return err
			}
			continue
		}
		exists[node.Name] = true
		if quiet, _ := silent(node); simulated(node) && !quiet {
			waiting++
		}
		if err := s.leaveAttaching(ctx, node); err != nil {
			return err
		}
		if ours && index < s.Nodes && !simulated(node) {
			s.log.Warn("a Node of this name exists and is not simulated; it is left alone",
				"node", node.Name, "label", ManagedLabel)
		}
	}

	for i := range s.Nodes {
		node, err := newNode(i, s.Options)
		if err != nil {
			return err
		}
		if exists[node.Name] {
			continue
		}
		if _, err := s.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating node %s: %w", node.Name, err)
		}
		waiting++
	}
	if s.waiting.Store(waiting); waiting == 0 {
		s.OnReady()
	}
	return nil
}

// unregister removes a Node and its Lease. Its Pods are for the Pod collector.
func (s *simulation) unregister(ctx context.Context, node *corev1.Node) error {
	same := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &node.UID}}
	err := s.client.CoreV1().Nodes().Delete(ctx, node.Name, same)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing node %s: %w", node.Name, err)
	}
	err = s.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(ctx, node.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the lease of node %s: %w", node.Name, err)
	}
	s.log.Info("removed a simulated node that is no longer wanted", "node", node.Name)
	return nil
}

func (s *simulation) followNodes(ctx context.Context, listed func()) {
	put := func(node *corev1.Node) {
		if !simulated(node) {
			s.store.dropNode(node.Name)
			return
		}
		node.ManagedFields = nil
		if s.store.putNode(node) {
			s.queue.AddWith(workqueue.Add{}, s.store.podsOn(node.Name)...)
		}
		s.wake(s.store.podsToMount(node.Name))
		s.queue.AddWith(workqueue.Add{Priority: workqueue.High}, nodeKey(node.Name))
	}
	api := s.client.CoreV1().Nodes()
	follow(ctx, feed[*corev1.Node]{
		what: "nodes",
		list: func(ctx context.Context, options metav1.ListOptions) ([]*corev1.Node, string, error) {
			list, err := api.List(ctx, options)
			if err != nil {
				return nil, "", err
			}
			return pointers(list.Items), list.ResourceVersion, nil
		},
		watch: api.Watch,
		replace: func(nodes []*corev1.Node) {
			names := map[string]bool{}
			for _, node := range nodes {
				names[node.Name] = true
				put(node)
			}
			s.store.keepNodes(names)
			listed()
		},
		change: func(node *corev1.Node, gone bool) {
			if gone {
				s.store.dropNode(node.Name)
				return
			}
			put(node)
		},
	}, s.log)
}

func (s *simulation) followPods(ctx context.Context, listed func()) {
	api := s.client.CoreV1().Pods(metav1.NamespaceAll)
	follow(ctx, feed[*corev1.Pod]{
		what: "pods",
		list: func(ctx context.Context, options metav1.ListOptions) ([]*corev1.Pod, string, error) {
			list, err := api.List(ctx, options)
			if err != nil {
				return nil, "", err
			}
			return pointers(list.Items), list.ResourceVersion, nil
		},
		watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return api.Watch(ctx, options)
		},
		options: metav1.ListOptions{FieldSelector: fields.OneTermNotEqualSelector("spec.nodeName", "").String()},
		replace: func(pods []*corev1.Pod) {
			for _, pod := range pods {
				s.stages.trim(pod)
			}
			s.queue.AddWith(workqueue.Add{}, s.store.replacePods(pods)...)
			listed()
		},
		change: func(pod *corev1.Pod, gone bool) {
			if len(volumesOf(pod)) > 0 {
				defer s.queue.Add(nodeKey(pod.Spec.NodeName)) // which volumes are in use may have changed
			}
			if gone {
				s.store.dropPod(pod)
				return
			}
			s.stages.trim(pod)
			if s.store.putPod(pod) {
				s.queue.Add(podKey(pod))
			}
		},
	}, s.log)
}

// pointers returns each item by itself: a pointer into items would keep all of
// them in memory for as long as one is kept.
func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = new(items[i])
	}
	return out
}

// work plays what is due, one key after the other, until the queue is shut down.
func (s *simulation) work(ctx context.Context) {
	for {
		item, ok := s.queue.Get()
		if !ok {
			return
		}
		if ctx.Err() == nil {
			s.play(ctx, item.Key)
		}
		s.queue.Done(item.Key)
	}
}

func (s *simulation) play(ctx context.Context, k key) {
	var wake time.Time
	var err error
	if k.node {
		wake, err = s.playNode(ctx, k.name.Name)
	} else {
		wake, err = s.playPod(ctx, k.name)
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.complain(k, err)
		s.queue.AddRateLimited(k)
	default:
		s.queue.Forget(k)
		if !wake.IsZero() {
			s.queue.AddAfter(k, time.Until(wake))
		}
	}
}

// complain logs what will be tried again: as a warning if the server refuses, and at the
// level of debug if it is not reached, which the feeds have logged.
func (s *simulation) complain(k key, err error) {
	level := slog.LevelDebug
	var status apierrors.APIStatus
	if s.queue.NumRequeues(k) == 0 && !apierrors.IsConflict(err) &&
		(!errors.As(err, &status) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) && !unreachable(err) {
		level = slog.LevelWarn
	}
	s.log.Log(context.Background(), level, "playing a simulated object; it will be tried again", "object", k.String(), "err", err)
}

func unreachable(err error) bool {
	return utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) ||
		utilnet.IsTimeout(err) || utilnet.IsHTTP2ConnectionLost(err)
}

func (k key) String() string {
	if k.node {
		return "node " + k.name.Name
	}
	return "pod " + k.name.String()
}
