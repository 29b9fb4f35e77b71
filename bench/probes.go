// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// controllerProbe is an object that is created while no manager runs, and what tells that its controller has seen to it.
// Controllers of both managers begin once their caches are full, so the last probe tells when all are.
type controllerProbe struct {
	controller string
	resource   string // group/version/plural, as in the path of a request
	manifest   string
	shows      string // a field that the controller fills, or "gone"
	at         string // group/version/plural/name of the object that shows it, if that is another one
}

// probes are those of the controllers that write something at once.
var probes = []controllerProbe{
	{controller: "deployment-controller", resource: "apps/v1/deployments", shows: "status.replicas", manifest: `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: probe}, spec: {selector: {matchLabels: {probe: deployment}}, template: {metadata: {labels: {probe: deployment}}, spec: {containers: [{name: c, image: i}]}}}}`},
	{controller: "replicationcontroller-controller", resource: "core/v1/replicationcontrollers", shows: "status.observedGeneration", manifest: `
{apiVersion: v1, kind: ReplicationController, metadata: {name: probe}, spec: {replicas: 1, selector: {probe: rc}, template: {metadata: {labels: {probe: rc}}, spec: {containers: [{name: c, image: i}]}}}}`},
	{controller: "statefulset-controller", resource: "apps/v1/statefulsets", shows: "status.observedGeneration", manifest: `
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: probe}, spec: {serviceName: probe, selector: {matchLabels: {probe: statefulset}}, template: {metadata: {labels: {probe: statefulset}}, spec: {containers: [{name: c, image: i}]}}}}`},
	{controller: "daemonset-controller", resource: "apps/v1/daemonsets", shows: "status.observedGeneration", manifest: `
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: probe}, spec: {selector: {matchLabels: {probe: daemonset}}, template: {metadata: {labels: {probe: daemonset}}, spec: {nodeSelector: {probe: none}, containers: [{name: c, image: i}]}}}}`},
	{controller: "job-controller", resource: "batch/v1/jobs", shows: "status.startTime", manifest: `
{apiVersion: batch/v1, kind: Job, metadata: {name: probe}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}`},
	{controller: "horizontal-pod-autoscaler-controller", resource: "autoscaling/v2/horizontalpodautoscalers", shows: "status.conditions", manifest: `
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: probe}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: probe}, maxReplicas: 2}}`},
	{controller: "disruption-controller", resource: "policy/v1/poddisruptionbudgets", shows: "status.observedGeneration", manifest: `
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: probe}, spec: {minAvailable: 1, selector: {matchLabels: {probe: deployment}}}}`},
	{controller: "endpoints-controller", resource: "core/v1/services", at: "core/v1/endpoints/probe", shows: "metadata.name", manifest: `
{apiVersion: v1, kind: Service, metadata: {name: probe}, spec: {selector: {probe: deployment}, ports: [{port: 80}]}}`},
	{controller: "garbage-collector-controller", resource: "core/v1/configmaps", shows: "gone", manifest: `
{apiVersion: v1, kind: ConfigMap, metadata: {name: probe, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: none, uid: 00000000-0000-0000-0000-000000000001}]}}`},
	{controller: "resourcequota-controller", resource: "core/v1/resourcequotas", shows: "status.hard", manifest: `
{apiVersion: v1, kind: ResourceQuota, metadata: {name: probe}, spec: {hard: {count/ingresses.networking.k8s.io: "1000000"}}}`},
	{controller: "clusterrole-aggregation-controller", resource: "rbac.authorization.k8s.io/v1/clusterroles", shows: "rules", manifest: `
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: probe}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {rbac.authorization.k8s.io/aggregate-to-view: "true"}}]}, rules: []}`},
	{controller: "node-ipam-controller", resource: "core/v1/nodes", shows: "spec.podCIDR", manifest: `
{apiVersion: v1, kind: Node, metadata: {name: probe}}`},
	{controller: "persistentvolume-binder-controller", resource: "core/v1/persistentvolumes", shows: "status.phase=Available", manifest: `
{apiVersion: v1, kind: PersistentVolume, metadata: {name: probe}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /none}}}`},
	{controller: "ephemeral-volume-controller", resource: "core/v1/pods", at: "core/v1/persistentvolumeclaims/probe-v", shows: "metadata.name", manifest: `
{apiVersion: v1, kind: Pod, metadata: {name: probe}, spec: {containers: [{name: c, image: i}], volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}}}}]}}`},
	{controller: "validatingadmissionpolicy-status-controller", resource: "admissionregistration.k8s.io/v1/validatingadmissionpolicies", shows: "status.observedGeneration", manifest: `
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: probe}, spec: {matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}, validations: [{expression: "object.metadata.name != 'none'"}]}}`},
}

// probed returns the client of a kind, which is group/version/plural. Objects without a namespace are those whose
// kinds are named here.
func (s *scene) probed(resource string) dynamic.ResourceInterface {
	parts := strings.Split(resource, "/")
	group := strings.TrimSuffix(parts[0], "core")
	kind := s.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: parts[1], Resource: parts[2]})
	switch parts[2] {
	case "nodes", "persistentvolumes", "clusterroles", "validatingadmissionpolicies":
		return kind
	}
	return kind.Namespace("default")
}

func (s *scene) createProbes(ctx context.Context) error {
	for _, p := range probes {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(p.manifest), &o.Object); err != nil {
			return fmt.Errorf("the probe of %s: %w", p.controller, err)
		}
		if _, err := s.probed(p.resource).Create(ctx, o, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating the probe of %s: %w", p.controller, err)
		}
	}
	return nil
}

// removeProbes removes the probes with what their controllers made of them, and waits until they are gone. A manager has to run.
func (s *scene) removeProbes(ctx context.Context) error {
	background := metav1.DeletePropagationBackground
	for _, p := range probes {
		err := s.probed(p.resource).Delete(ctx, "probe", metav1.DeleteOptions{PropagationPolicy: &background})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("removing the probe of %s: %w", p.controller, err)
		}
	}
	return poll(ctx, "the probes to go", func() (bool, error) {
		for _, p := range probes {
			resource, name := p.shownBy()
			for at, name := range map[string]string{p.resource: "probe", resource: name} {
				if _, err := s.probed(at).Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
					return false, err
				}
			}
		}
		return true, s.aliveManager()
	})
}

// probePause is the time between two looks at the probes that are left.
const probePause = 100 * time.Millisecond

// awaitProbes waits until all controllers have seen to their probes.
func (s *scene) awaitProbes(ctx context.Context) error {
	left := probes
	for len(left) > 0 {
		var next []controllerProbe
		for _, p := range left {
			done, err := s.shown(ctx, p)
			if err != nil {
				return err
			}
			if !done {
				next = append(next, p)
			}
		}
		left = next
		if err := s.manager.alive(); err != nil {
			return err
		}
		if err := pause(ctx, probePause); err != nil && len(left) > 0 {
			return fmt.Errorf("waiting for %s: %w", left[0].controller, err)
		}
	}
	return nil
}

// shownBy returns the object that shows what the controller did.
func (p *controllerProbe) shownBy() (resource, name string) {
	if i := strings.LastIndex(p.at, "/"); i > 0 {
		return p.at[:i], p.at[i+1:]
	}
	return p.resource, "probe"
}

// shown reports whether a controller has seen to its probe.
func (s *scene) shown(ctx context.Context, p controllerProbe) (bool, error) {
	resource, name := p.shownBy()
	o, err := s.probed(resource).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return p.shows == "gone", nil
	}
	if err != nil || p.shows == "gone" {
		return false, err
	}
	path, want, exact := strings.Cut(p.shows, "=")
	value, there, err := unstructured.NestedFieldNoCopy(o.Object, strings.Split(path, ".")...)
	if exact {
		return value == want, err
	}
	return there && value != nil, err
}
