// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controllers/attachdetach"
	"github.com/setpoint-io/setpoint/controllers/clusterroleaggregation"
	"github.com/setpoint-io/setpoint/controllers/cronjob"
	"github.com/setpoint-io/setpoint/controllers/csrapproving"
	"github.com/setpoint-io/setpoint/controllers/csrcleaner"
	"github.com/setpoint-io/setpoint/controllers/csrsigning"
	"github.com/setpoint-io/setpoint/controllers/daemonset"
	"github.com/setpoint-io/setpoint/controllers/devicetainteviction"
	"github.com/setpoint-io/setpoint/controllers/disruption"
	"github.com/setpoint-io/setpoint/controllers/endpoints"
	"github.com/setpoint-io/setpoint/controllers/endpointslice"
	"github.com/setpoint-io/setpoint/controllers/endpointslicemirroring"
	"github.com/setpoint-io/setpoint/controllers/ephemeralvolume"
	"github.com/setpoint-io/setpoint/controllers/garbagecollector"
	"github.com/setpoint-io/setpoint/controllers/horizontalpodautoscaler"
	"github.com/setpoint-io/setpoint/controllers/job"
	"github.com/setpoint-io/setpoint/controllers/namespace"
	"github.com/setpoint-io/setpoint/controllers/nodeipam"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/controllers/nodettl"
	"github.com/setpoint-io/setpoint/controllers/podgc"
	"github.com/setpoint-io/setpoint/controllers/pvbinder"
	"github.com/setpoint-io/setpoint/controllers/pvcprotection"
	"github.com/setpoint-io/setpoint/controllers/pvprotection"
	"github.com/setpoint-io/setpoint/controllers/registry"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
	"github.com/setpoint-io/setpoint/controllers/replicationcontroller"
	"github.com/setpoint-io/setpoint/controllers/resourceclaim"
	"github.com/setpoint-io/setpoint/controllers/resourcequota"
	"github.com/setpoint-io/setpoint/controllers/rootcapublisher"
	"github.com/setpoint-io/setpoint/controllers/serviceaccount"
	"github.com/setpoint-io/setpoint/controllers/serviceaccounttoken"
	"github.com/setpoint-io/setpoint/controllers/servicecidr"
	"github.com/setpoint-io/setpoint/controllers/statefulset"
	"github.com/setpoint-io/setpoint/controllers/tainteviction"
	"github.com/setpoint-io/setpoint/controllers/ttlafterfinished"
	"github.com/setpoint-io/setpoint/controllers/vacprotection"
	"github.com/setpoint-io/setpoint/controllers/volumeexpander"
	"github.com/setpoint-io/setpoint/internal/certrequesttest"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

// labour is what a controller is given to do: items of work, of which each takes the
// same writes.
type labour struct {
	controller string
	flags      []string
	prepare    func(*cluster)                // what all items need
	item       func(c *cluster, name string) // makes the work of one item
	// writes are how many writes of a pattern an item takes; NS is the namespace, and
	// ITEM stands for the names of items. Writes that no pattern matches may be any
	// number, as long as each changes something.
	writes map[string]int
	// least are writes about objects without a namespace, of which other tests of the cluster make some too: there are
	// at least so many for each item.
	least map[string]int
}

// patterns returns what the keys of writes match.
func patterns(c *cluster, writes map[string]int) map[*regexp.Regexp]int {
	all := map[*regexp.Regexp]int{}
	for pattern, n := range writes {
		pattern = strings.ReplaceAll(strings.ReplaceAll(pattern, "ITEM", c.namespace+"-[0-9]+"), "NS", c.namespace)
		all[regexp.MustCompile("^"+pattern+"$")] = n
	}
	return all
}

func labours(t *testing.T) []labour {
	t.Helper()
	files := shared.Get(t).Endpoints()
	yaml := func(text string) func(*cluster, string) {
		return func(c *cluster, name string) { c.manifest(strings.ReplaceAll(text, "ITEM", name)) }
	}
	node := func(spec string) func(*cluster, string) {
		return func(c *cluster, name string) { c.node(name, spec) }
	}
	const template = `{"metadata": {"labels": {"app": "ITEM"}}, "spec": {"containers": [{"name": "main", "image": "web"}]}}`
	const service = `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s-ITEM"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}`
	return []labour{
		{
			controller: replicaset.Name, writes: map[string]int{`POST .*/NS/pods`: 2},
			item: yaml(`{"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "ITEM"},
				"spec": {"replicas": 2, "selector": {"matchLabels": {"app": "ITEM"}}, "template": ` + template + `}}`),
		}, {
			controller: replicationcontroller.Name, writes: map[string]int{`POST .*/NS/pods`: 2},
			item: yaml(`{"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "ITEM"},
				"spec": {"replicas": 2, "selector": {"app": "ITEM"}, "template": ` + template + `}}`),
		}, {
			controller: daemonset.Name, writes: map[string]int{`POST .*/NS/pods`: 2, `POST .*/NS/controllerrevisions`: 1},
			item: yaml(`{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "ITEM"}, "spec": {"selector": {"matchLabels": {"app": "ITEM"}},
				"template": {"metadata": {"labels": {"app": "ITEM"}}, "spec": {"containers": [{"name": "main", "image": "web"}], "affinity": {"nodeAffinity": {
					"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [
						{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-0", "node-1"]}]}]}}}}}}}`),
		}, {
			controller: endpointslice.Name, writes: map[string]int{`POST .*/NS/endpointslices`: 1}, item: yaml(service),
		}, {
			controller: endpoints.Name, writes: map[string]int{`POST .*/NS/endpoints`: 1}, item: yaml(service),
		}, {
			controller: endpointslicemirroring.Name, writes: map[string]int{`POST .*/NS/endpointslices`: 1},
			item: func(c *cluster, name string) {
				yaml(`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s-ITEM"}, "spec": {"ports": [{"port": 80}]}}`)(c, name)
				yaml(`{"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "s-ITEM"}, "subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}]}`)(c, name)
			},
		}, {
			controller: garbagecollector.Name, writes: map[string]int{`DELETE .*/NS/configmaps/ITEM`: 1},
			item: yaml(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ITEM",
				"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "8a1d3a7e-0000-4000-8000-000000000000"}]}}`),
		}, {
			controller: namespace.Name, writes: map[string]int{`PUT /api/v1/namespaces/ITEM/finalize`: 1, `DELETE .*/namespaces/ITEM/configmaps`: 1},
			item: func(c *cluster, name string) {
				yaml(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ITEM"}}`)(c, name)
				within := *c
				within.namespace = name
				within.manifest(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`)
				if err := c.remove("namespace", name); err != nil {
					c.t.Fatal(err)
				}
			},
		}, {
			controller: nodelifecycle.Name, writes: map[string]int{`PATCH /api/v1/nodes/ITEM`: 1}, item: node(`{"unschedulable": true}`),
		}, {
			controller: nodeipam.Name, writes: map[string]int{`PATCH /api/v1/nodes/ITEM`: 1}, item: node(`{"unschedulable": true}`),
			flags: []string{"--allocate-node-cidrs", "--cluster-cidr=10.244.0.0/16,fd00:244::/48", "--service-cluster-ip-range=10.96.0.0/12"},
		}, {
			controller: nodettl.Name, writes: map[string]int{`PATCH /api/v1/nodes/ITEM`: 1}, item: node(`{"unschedulable": true}`),
		}, {
			controller: podgc.Name, writes: map[string]int{`PATCH .*/NS/pods/ITEM/status`: 1, `DELETE .*/NS/pods/ITEM`: 1},
			prepare: func(c *cluster) {
				node(`{"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}], "unschedulable": true}`)(c, "out-"+c.namespace)
			},
			item: func(c *cluster, name string) {
				c.boundPod(name, "out-"+c.namespace)
				if err := c.remove("pod", name); err != nil {
					c.t.Fatal(err)
				}
			},
		}, {
			controller: tainteviction.Name, writes: map[string]int{`PATCH .*/NS/pods/ITEM/status`: 1, `DELETE .*/NS/pods/ITEM`: 1},
			prepare: func(c *cluster) {
				node(`{"taints": [{"key": "a", "effect": "NoExecute"}], "unschedulable": true}`)(c, "tainted-"+c.namespace)
			},
			item: func(c *cluster, name string) {
				c.boundPod(name, "tainted-"+c.namespace)
			},
		}, {
			controller: serviceaccount.Name, writes: map[string]int{`POST .*/namespaces/ITEM/serviceaccounts`: 1},
			item: yaml(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ITEM"}}`),
		}, {
			controller: serviceaccounttoken.Name, writes: map[string]int{`PUT .*/NS/secrets/ITEM`: 1}, flags: []string{"--service-account-private-key-file", files.ServiceAccountKeyFile},
			item: yaml(`{"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
				"metadata": {"name": "ITEM", "annotations": {"kubernetes.io/service-account.name": "default"}}}`),
		}, {
			controller: servicecidr.Name, writes: map[string]int{`PATCH .*/servicecidrs/ITEM`: 1, `PATCH .*/servicecidrs/ITEM/status`: 1},
			item: yaml(`{"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": "ITEM"}, "spec": {"cidrs": ["fd00:5c::/112"]}}`),
		}, {
			controller: rootcapublisher.Name, writes: map[string]int{`POST .*/namespaces/ITEM/configmaps`: 1}, flags: []string{"--root-ca-file", files.CAFile},
			item: yaml(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ITEM"}}`),
		}, {
			controller: clusterroleaggregation.Name, writes: map[string]int{`PATCH .*/clusterroles/ITEM`: 1},
			prepare: func(c *cluster) {
				c.manifest(strings.ReplaceAll(`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "part-NS", "labels": {"in": "NS"}},
					"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}`, "NS", c.namespace))
			},
			item: func(c *cluster, name string) {
				c.manifest(fmt.Sprintf(`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": %q},
					"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"in": %q}}]}}`, name, c.namespace))
			},
		}, {
			controller: cronjob.Name, writes: map[string]int{`POST .*/NS/jobs`: 1, `PUT .*/NS/cronjobs/item-[0-9]+/status`: 1},
			// A CronJob's name has 52 characters at most.
			item: func(c *cluster, name string) { c.dueCronJob("item" + name[strings.LastIndex(name, "-"):]) },
		}, {
			controller: job.Name, writes: map[string]int{`POST .*/NS/pods`: 2},
			item: yaml(`{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "ITEM"}, "spec": {"completions": 2, "parallelism": 2,
				"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "web"}]}}}}`),
		}, {
			controller: disruption.Name, writes: map[string]int{`PUT .*/NS/poddisruptionbudgets/ITEM/status`: 1},
			item: yaml(`{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "ITEM"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "ITEM"}}}}`),
		}, {
			controller: horizontalpodautoscaler.Name, writes: map[string]int{`PUT .*/NS/replicasets/ITEM/scale`: 1},
			item: func(c *cluster, name string) {
				yaml(`{"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "ITEM"},
					"spec": {"replicas": 1, "selector": {"matchLabels": {"app": "ITEM"}}, "template": `+template+`}}`)(c, name)
				yaml(`{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "ITEM"},
					"spec": {"minReplicas": 3, "maxReplicas": 5, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "ITEM"}}}`)(c, name)
			},
		}, {
			controller: statefulset.Name,
			writes:     map[string]int{`POST .*/NS/pods`: 2, `POST .*/NS/persistentvolumeclaims`: 2, `POST .*/NS/controllerrevisions`: 1},
			// The name of a revision is the value of a label, which has 63 characters at most.
			item: func(c *cluster, name string) { c.statefulSet("item" + name[strings.LastIndex(name, "-"):]) },
		}, {
			controller: csrapproving.Name, writes: map[string]int{`PUT .*/certificatesigningrequests/ITEM/approval`: 1},
			item: func(c *cluster, name string) {
				c.request(name, certificatesv1.KubeAPIServerClientKubeletSignerName, false)
			},
		}, {
			controller: csrsigning.Name, writes: map[string]int{`PUT .*/certificatesigningrequests/ITEM/status`: 1},
			flags: []string{"--cluster-signing-cert-file", files.CAFile, "--cluster-signing-key-file", files.CAKeyFile},
			item: func(c *cluster, name string) {
				c.request(name, certificatesv1.KubeAPIServerClientKubeletSignerName, true)
			},
		}, {
			controller: csrcleaner.Name, writes: map[string]int{`DELETE .*/certificatesigningrequests/ITEM`: 1},
			item: func(c *cluster, name string) {
				csr, _ := certrequesttest.Object(c.t, name, "example.com/signer", certrequesttest.User("jane"), certrequesttest.ClientUsages...)
				requests := client.For[*certificatesv1.CertificateSigningRequest](c.Client)
				csr, err := requests.Create(c.t.Context(), csr)
				if err != nil {
					c.t.Fatal(err)
				}
				csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
					Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "Test", LastUpdateTime: metav1.NewTime(time.Now().Add(-2 * time.Hour)),
				}}
				if _, err := requests.Sub("approval").Update(c.t.Context(), object.KeyOf(csr), csr); err != nil {
					c.t.Fatal(err)
				}
			},
		}, {
			controller: vacprotection.Name, writes: map[string]int{`PUT .*/volumeattributesclasses/ITEM`: 1},
			item: func(c *cluster, name string) {
				c.manifest(fmt.Sprintf(`{"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass", "metadata": {"name": %q},
					"driverName": "csi.example.com", "parameters": {"speed": "high"}}`, name))
				if err := c.remove("volumeattributesclass", name); err != nil {
					c.t.Error(err)
				}
			},
		}, {
			controller: ephemeralvolume.Name, writes: map[string]int{`POST .*/NS/persistentvolumeclaims`: 2},
			item: yaml(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ITEM"}, "spec": {"containers": [{"name": "main", "image": "web"}], "volumes": [
				{"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}}}},
				{"name": "b", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}}}}]}}`),
		}, {
			controller: volumeexpander.Name, writes: map[string]int{`PATCH .*/NS/persistentvolumeclaims/ITEM/status`: 1},
			item: func(c *cluster, name string) { c.growingClaim(name) },
		}, {
			controller: pvcprotection.Name, writes: map[string]int{`PUT .*/NS/persistentvolumeclaims/ITEM`: 1},
			item: func(c *cluster, name string) {
				c.manifest(fmt.Sprintf(`{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": %q},
					"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}}`, name))
				if err := c.remove("persistentvolumeclaim", name); err != nil {
					c.t.Error(err)
				}
			},
		}, {
			controller: pvbinder.Name, writes: map[string]int{
				`PUT .*/persistentvolumes/ITEM`: 1, `PUT .*/persistentvolumes/ITEM/status`: 1,
				`PUT .*/NS/persistentvolumeclaims/ITEM`: 1, `PUT .*/NS/persistentvolumeclaims/ITEM/status`: 1,
			},
			item: func(c *cluster, name string) {
				yaml(`{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "ITEM"},
					"spec": {"storageClassName": "", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}`)(c, name)
				c.manifest(fmt.Sprintf(`{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": %q},
					"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/nonexistent"},
						"claimRef": {"namespace": %q, "name": %q}}}`, name, c.namespace, name))
			},
		}, {
			controller: pvprotection.Name, writes: map[string]int{`PUT .*/persistentvolumes/ITEM`: 1},
			item: func(c *cluster, name string) {
				c.manifest(fmt.Sprintf(`{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": %q},
					"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/nonexistent"}}}`, name))
				if err := c.remove("persistentvolume", name); err != nil {
					c.t.Error(err)
				}
			},
		}, {
			controller: devicetainteviction.Name,
			writes: map[string]int{
				`PATCH .*/NS/pods/ITEM/status`: 1, `DELETE .*/NS/pods/ITEM`: 1, `PATCH .*/devicetaintrules/ITEM/status`: 1,
			},
			prepare: func(c *cluster) { c.brokenDevice() },
			item: func(c *cluster, name string) {
				c.podWithDevice(name)
				c.rule(name)
			},
		}, {
			controller: resourceclaim.Name,
			writes: map[string]int{
				`POST .*/NS/resourceclaims`: 1, `PATCH .*/NS/pods/ITEM/status`: 1,
				`PUT .*/NS/resourceclaims/of-ITEM/status`: 1, `DELETE .*/NS/resourceclaims/of-ITEM`: 1,
			},
			prepare: func(c *cluster) { c.claimTemplate() },
			item: func(c *cluster, name string) {
				yaml(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ITEM"}, "spec": {"resourceClaims": [{"name": "dev", "resourceClaimTemplateName": "devices"}],
					"containers": [{"name": "main", "image": "web"}]}}`)(c, name)
				c.claimOfEndedPod(name)
			},
		}, {
			controller: resourcequota.Name, writes: map[string]int{`PUT .*/NS/resourcequotas/ITEM/status`: 1},
			item: yaml(`{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "ITEM"}, "spec": {"hard": {"pods": "10", "count/deployments.apps": "10"}}}`),
		}, {
			controller: attachdetach.Name,
			writes:     map[string]int{`PATCH /api/v1/nodes/ITEM/status`: 1},
			least:      map[string]int{`POST .*/volumeattachments`: 1, `DELETE .*/volumeattachments/csi-[0-9a-f]+`: 1},
			item:       func(c *cluster, name string) { c.attachments(name) },
		}, {
			controller: ttlafterfinished.Name, writes: map[string]int{`DELETE .*/NS/jobs/ITEM`: 1},
			item: func(c *cluster, name string) { c.finishedJob(name) },
		},
	}
}

// statefulSet makes a StatefulSet of two Pods with a claim each.
func (c *cluster) statefulSet(name string) {
	c.t.Helper()
	c.manifest(strings.ReplaceAll(`{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "NAME"}, "spec": {
		"replicas": 2, "podManagementPolicy": "Parallel", "selector": {"matchLabels": {"app": "NAME"}},
		"template": {"metadata": {"labels": {"app": "NAME"}}, "spec": {"containers": [{"name": "main", "image": "web"}]}},
		"volumeClaimTemplates": [{"metadata": {"name": "data"},
			"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}}]}}`, "NAME", name))
}

// growingClaim makes a claim that asks for more storage than it has, of a volume whose plugin a CSI
// driver has taken over.
func (c *cluster) growingClaim(name string) {
	c.t.Helper()
	claims := client.For[*corev1.PersistentVolumeClaim](c.Client)
	claim, err := claims.Create(c.t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: name, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new(""),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}},
		},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.manifest(fmt.Sprintf(`{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": %q}, "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
		"cinder": {"volumeID": "v"}, "claimRef": {"namespace": %q, "name": %q, "uid": %q}}}`, name, c.namespace, name, claim.UID))
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	if _, err := claims.UpdateStatus(c.t.Context(), claim); err != nil {
		c.t.Fatal(err)
	}
}

// attachments makes a Node, a volume that is attached to it for no Pod, and a volume that is to be
// attached for a Pod.
func (c *cluster) attachments(node string) {
	c.t.Helper()
	c.manifest(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": %q, "annotations": {%q: "true"}}, "spec": {"unschedulable": true}}`,
		node, attachdetach.Annotation))
	for _, which := range []string{"left", "wanted"} {
		name := which + "-" + node
		c.manifest(fmt.Sprintf(`{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": %q},
			"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": %[1]q, "resources": {"requests": {"storage": "1Gi"}}}}`, name))
		claim, err := client.For[*corev1.PersistentVolumeClaim](c.Client).Get(c.t.Context(), c.key(name))
		if err != nil {
			c.t.Fatal(err)
		}
		c.manifest(fmt.Sprintf(`{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": %q}, "spec": {
			"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": {"driver": "disk.example.com", "volumeHandle": %[1]q},
			"claimRef": {"namespace": %[2]q, "name": %[1]q, "uid": %[3]q}}}`, name, c.namespace, claim.UID))
		c.status("persistentvolumeclaim/"+name, `{"status": {"phase": "Bound"}}`)
	}
	left := attachdetach.AttachmentName("left-"+node, "disk.example.com", node)
	c.status("node/"+node, fmt.Sprintf(`{"status": {"volumesAttached": [{"name": "kubernetes.io/csi/disk.example.com^left-%s", "devicePath": ""}]}}`, node))
	c.manifest(fmt.Sprintf(`{"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": %q},
		"spec": {"attacher": "disk.example.com", "nodeName": %q, "source": {"persistentVolumeName": "left-%[2]s"}}}`, left, node))
	c.status("volumeattachment/"+left, `{"status": {"attached": true}}`)
	c.manifest(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q}, "spec": {"nodeName": %[1]q,
		"containers": [{"name": "main", "image": "web"}], "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "wanted-%[1]s"}}]}}`, node))
}

// boundPod makes a Pod on a node that nobody looks after.
func (c *cluster) boundPod(name, node string) {
	c.t.Helper()
	c.manifest(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q}, "spec": {"nodeName": %q, "containers": [{"name": "main", "image": "web"}]}}`, name, node))
}

// elsewhere names the tests of the controllers that have one of their own for what
// happens when they are killed.
//
//nolint:gosec // names of controllers
var elsewhere = map[string]string{
	"deployment-controller":                                          "TestADeploymentControllerThatIsKilledAfterItsWritesMakesEachOfThemOnce",
	"legacy-serviceaccount-token-cleaner-controller":                 "its own folder: it works once a day",
	"bootstrap-signer-controller":                                    "its own folder",
	"storage-version-migrator-controller":                            "its own folder: its patches change nothing, and this test takes such writes for a mistake",
	"selinux-warning-controller":                                     "its own folder: it writes Events alone",
	"token-cleaner-controller":                                       "its own folder",
	"kube-apiserver-serving-clustertrustbundle-publisher-controller": "its own folder: a cluster has one of its objects",
	"podcertificaterequest-cleaner-controller":                       "its own folder: it deletes what is 15 minutes old",
	"validatingadmissionpolicy-status-controller":                    "its own folder: it makes one write, by server-side apply",
}

func TestNoControllerIsLeftOutOfTheTestsOfKilledProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("what is compared needs a control plane")
	}
	var have []string
	for _, l := range append(labours(t), labourBehindGates()...) {
		have = append(have, l.controller)
	}
	for _, entry := range registry.Known() {
		if elsewhere[entry.Name] == "" && !slices.Contains(have, entry.Name) {
			t.Errorf("%s is killed by no test", entry.Name)
		}
	}
}

// Each is a process of its own, with the rights of its manifest and no others. The first
// is killed after its first write, the second after its second, and so on, each before it
// hears of that write.
func TestAControllerAloneUnderItsManifestThatIsKilledAfterItsWritesMakesEachOfThemOnce(t *testing.T) {
	t.Parallel() // beside the tests that have control planes of their own
	// The controllers act on all namespaces, so most of them have to run one after the other.
	// The namespace controller begins its work 5 s after it has seen a deletion, in each of its
	// lives, and acts on nothing that the others need.
	var inTurn, beside []labour
	for _, l := range labours(t) {
		if l.controller == namespace.Name {
			beside = append(beside, l)
		} else {
			inTurn = append(inTurn, l)
		}
	}
	for name, lane := range map[string][]labour{"in turn": inTurn, "beside": beside} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, l := range lane {
				t.Run(l.controller, func(t *testing.T) { l.killedAfterItsWrites(t, shared.Get(t)) })
			}
		})
	}
}

func (l *labour) killedAfterItsWrites(t *testing.T, plane *controlplanetest.Cluster) {
	const items, kills = 12, 4
	c := &cluster{Cluster: plane, t: t}
	c.namespace = c.Namespace(t)
	chosen, err := registry.Select(registry.Known(), []string{l.controller})
	if err != nil {
		t.Fatal(err)
	}
	alone := managertest.NewAlone(t, c.Cluster, l.controller, chosen[0].Rights()[""], l.flags...)
	if l.prepare != nil {
		l.prepare(c)
	}
	for i := range items {
		l.item(c, fmt.Sprintf("%s-%d", c.namespace, i))
	}
	exact, least := patterns(c, l.writes), patterns(c, l.least)
	// missing says what is yet to be written for so many items.
	missing := func(items int) string {
		for _, wanted := range []map[*regexp.Regexp]int{exact, least} {
			for pattern, n := range wanted {
				if have := count(alone.Writes(), pattern); have < n*items {
					return fmt.Sprintf("%d of %d: %s", have, n*items, pattern)
				}
			}
		}
		return ""
	}
	for killed := 1; killed <= kills && missing(items) != ""; killed++ {
		alone.Start(killed)
		c.eventually(func() string { // that one, or what was under way with it, may have been the last
			select {
			case <-alone.Ended():
				return ""
			default:
				return missing(items)
			}
		})
		alone.Kill()
	}
	l.item(c, fmt.Sprintf("%s-%d", c.namespace, items))
	alone.Start(0)
	c.eventually(func() string { return missing(items + 1) })
	alone.Kill()

	for pattern, n := range exact {
		if have := count(alone.Writes(), pattern); have != n*(items+1) {
			t.Errorf("%d writes, want %d: %s", have, n*(items+1), pattern)
		}
	}
	for _, write := range alone.Writes() {
		if write.Idle {
			t.Errorf("%s %s changed nothing", write.Method, write.Path)
		}
		if write.Blind {
			t.Errorf("%s %s does not say of which UID", write.Method, write.Path)
		}
	}
	if log := alone.Log(); strings.Contains(log, "forbidden") || strings.Contains(log, "lack a right") || strings.Contains(log, "level=ERROR") {
		t.Errorf("it lacks something: %s", log)
	}
}

func count(writes []managertest.AloneWrite, pattern *regexp.Regexp) (n int) {
	for _, write := range writes {
		if pattern.MatchString(write.Method + " " + write.Path) {
			n++
		}
	}
	return n
}
