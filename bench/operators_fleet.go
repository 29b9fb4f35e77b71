// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// fleet are the objects that the core manager of cluster-api caches: Machines, with the MachineSets,
// MachineDeployments and Clusters that own them. The Clusters are paused, as they are while an operator of
// the fleet moves them: the manager reads each object with its owners and its Cluster, and writes nothing.
// It needs no workload clusters then.
type fleet struct {
	*scene
	kinds string // folder of their definitions
}

const (
	fleetNamespace    = "fleet"
	machinesOfSet     = 100
	machinesOfCluster = 1000
	clusterLabel      = "cluster.x-k8s.io/cluster-name"
	deploymentLabel   = "cluster.x-k8s.io/deployment-name"
	setLabel          = "cluster.x-k8s.io/set-name"
)

// defineKinds creates the definitions of custom kinds that are in a folder.
func (s *scene) defineKinds(ctx context.Context, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there are no definitions in %s", dir)
	}
	if err != nil {
		return err
	}
	definitions := s.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var o unstructured.Unstructured
		if err := yaml.Unmarshal(text, &o.Object); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		if _, err := definitions.Create(ctx, &o, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// define creates the definitions of cluster-api and waits until they are served.
func (f *fleet) define(ctx context.Context) error {
	if err := f.defineKinds(ctx, f.kinds); err != nil {
		return err
	}
	for _, plural := range []string{"machines", "machinesets", "machinedeployments", "clusters"} {
		err := poll(ctx, "the kind "+plural, func() (bool, error) {
			_, err := f.resource(plural).List(ctx, metav1.ListOptions{Limit: 1})
			return err == nil, nil
		})
		if err != nil {
			return err
		}
	}
	return f.addNamespace(ctx, fleetNamespace)
}

// creator is what creates objects of a kind of the fleet.
type creator interface {
	Create(context.Context, *unstructured.Unstructured, metav1.CreateOptions, ...string) (*unstructured.Unstructured, error)
	UpdateStatus(context.Context, *unstructured.Unstructured, metav1.UpdateOptions) (*unstructured.Unstructured, error)
	Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error)
	List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error)
}

func (f *fleet) resource(plural string) creator {
	return f.dynamic.Resource(schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: plural}).Namespace(fleetNamespace)
}

// part is a part of an object.
type part = map[string]any

// create creates the Clusters, then what they have.
func (f *fleet) create(ctx context.Context) error {
	clusters := (f.size + machinesOfCluster - 1) / machinesOfCluster
	owners := make([]types.UID, clusters)
	err := f.each(ctx, clusters, func(ctx context.Context, i int) (err error) {
		owners[i], err = f.add(ctx, "clusters", "Cluster", clusterName(i), part{}, nil,
			part{"paused": true, "clusterNetwork": part{"pods": part{"cidrBlocks": []any{"10.0.0.0/16"}}}}, nil)
		return err
	})
	if err != nil {
		return err
	}
	sets := make([]types.UID, (f.size+machinesOfSet-1)/machinesOfSet)
	err = f.each(ctx, len(sets), func(ctx context.Context, i int) error {
		cluster := i * machinesOfSet / machinesOfCluster
		spec := setSpec(clusterName(cluster), setName(i))
		deployment, err := f.add(ctx, "machinedeployments", "MachineDeployment", setName(i), part{clusterLabel: clusterName(cluster)},
			ownedBy("Cluster", clusterName(cluster), owners[cluster], false), spec, nil)
		if err != nil {
			return err
		}
		sets[i], err = f.add(ctx, "machinesets", "MachineSet", setName(i), part{clusterLabel: clusterName(cluster), deploymentLabel: setName(i)},
			ownedBy("MachineDeployment", setName(i), deployment, true), spec, nil)
		return err
	})
	if err != nil {
		return err
	}
	return f.each(ctx, f.size, func(ctx context.Context, i int) error {
		set, cluster := i/machinesOfSet, i/machinesOfCluster
		_, err := f.add(ctx, "machines", "Machine", machineName(i),
			part{clusterLabel: clusterName(cluster), deploymentLabel: setName(set), setLabel: setName(set)},
			ownedBy("MachineSet", setName(set), sets[set], true), machineSpec(i, clusterName(cluster)), machineStatus(i))
		return err
	})
}

// add creates an object, writes its status if there is one, and returns its UID.
func (f *fleet) add(ctx context.Context, plural, kind, name string, labels part, owner []any, spec, status part) (types.UID, error) {
	metadata := part{"name": name, "namespace": fleetNamespace, "labels": labels}
	if owner != nil {
		metadata["ownerReferences"] = owner
	}
	if kind == "Machine" {
		metadata["finalizers"] = []any{"machine.cluster.x-k8s.io"}
	}
	o := &unstructured.Unstructured{Object: part{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}}
	made, err := f.resource(plural).Create(ctx, o, metav1.CreateOptions{})
	if err != nil || status == nil {
		return uidOf(made), err
	}
	made.Object["status"] = status
	if made, err = f.resource(plural).UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return "", err
	}
	return made.GetUID(), nil
}

func (f *fleet) bytes(ctx context.Context) (int, error) {
	one, err := f.resource("machines").Get(ctx, machineName(0), metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	text, err := json.Marshal(one)
	return len(text), err
}

func uidOf(o *unstructured.Unstructured) types.UID {
	if o == nil {
		return ""
	}
	return o.GetUID()
}

func clusterName(i int) string { return fmt.Sprint("cluster-", i) }
func setName(i int) string     { return fmt.Sprintf("workers-%d-x7k2p", i) }
func machineName(i int) string { return fmt.Sprintf("%s-%05d", setName(i/machinesOfSet), i) }

func ownedBy(kind, name string, uid types.UID, controller bool) []any {
	return []any{part{
		"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "name": name, "uid": string(uid),
		"controller": controller, "blockOwnerDeletion": controller,
	}}
}

// setSpec is the spec of a MachineSet, or of a MachineDeployment.
func setSpec(cluster, set string) part {
	labels := part{clusterLabel: cluster, deploymentLabel: set}
	return part{
		"clusterName": cluster, "replicas": int64(machinesOfSet), "selector": part{"matchLabels": labels},
		"template": part{"metadata": part{"labels": labels}, "spec": machineSpec(0, cluster)},
	}
}

func machineSpec(i int, cluster string) part {
	return part{
		"clusterName": cluster, "version": "v1.37.2", "failureDomain": fmt.Sprint("zone-", i%3),
		"providerID":        fmt.Sprintf("cloud:///zone-%d/i-%016x", i%3, i*7919),
		"bootstrap":         part{"dataSecretName": machineName(i)},
		"infrastructureRef": part{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "CloudMachine", "name": machineName(i)},
		"deletion":          part{"nodeDrainTimeoutSeconds": int64(600), "nodeDeletionTimeoutSeconds": int64(10)},
	}
}

// machineStatus is the status of a Machine that runs, with the conditions of cluster-api.
func machineStatus(i int) part {
	now := time.Unix(1_790_000_000+int64(i), 0).UTC().Format(time.RFC3339)
	condition := func(kind, status, reason, message string) any {
		return part{
			"type": kind, "status": status, "reason": reason, "message": message,
			"lastTransitionTime": now, "observedGeneration": int64(1),
		}
	}
	return part{
		"observedGeneration": int64(1), "phase": "Running", "lastUpdated": now,
		"initialization": part{"bootstrapDataSecretCreated": true, "infrastructureProvisioned": true},
		"nodeRef":        part{"name": machineName(i)},
		"addresses": []any{
			part{"type": "InternalIP", "address": fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)},
			part{"type": "InternalDNS", "address": machineName(i) + ".internal"},
		},
		"nodeInfo": part{
			"architecture": "amd64", "operatingSystem": "linux", "osImage": "Ubuntu 24.04.3 LTS", "kernelVersion": "6.8.0-79-generic",
			"kubeletVersion": "v1.37.2", "kubeProxyVersion": "v1.37.2", "containerRuntimeVersion": "containerd://2.1.4",
			"machineID": fmt.Sprintf("%032x", i*31), "systemUUID": fmt.Sprintf("%032x", i*37), "bootID": fmt.Sprintf("%032x", i*41),
		},
		"conditions": []any{
			condition("Available", "True", "Available", ""), condition("Ready", "True", "Ready", ""),
			condition("UpToDate", "True", "UpToDate", ""), condition("BootstrapConfigReady", "True", "DataSecretProvided", ""),
			condition("InfrastructureReady", "True", "Ready", ""), condition("NodeHealthy", "True", "NodeHealthy", ""),
			condition("NodeReady", "True", "NodeReady", "kubelet is posting ready status"), condition("Deleting", "False", "NotDeleting", ""),
			condition("Paused", "True", "Paused", "Cluster spec.paused is set to true"),
		},
	}
}
