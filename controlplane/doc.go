// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

/*
Package controlplane runs a real Kubernetes control plane inside a Go process:
kube-apiserver (one or several), etcd and kube-scheduler, built from Kubernetes'
own source. It needs no container, no download and no root.

	cp, err := controlplane.Start(ctx, controlplane.Options{})
	...
	client, err := kubernetes.NewForConfig(cp.AdminConfig())
	...
	err = cp.Stop(ctx)

A start takes two to three seconds on two cores, and some 300 MB of memory; a
second API server takes half a second and 150 MB more.

# What is real, and what is not

Storage, the API with all its defaulting, validation, versions and watches,
admission with its default plugins and NodeRestriction, authentication by client
certificate and service-account token, authorization by Node and RBAC, priority
and fairness, CustomResourceDefinitions, API aggregation, and scheduling are
Kubernetes' own code, configured the way kubeadm configures it. Auditing is off.

There is no controller manager. Until one runs against this control plane:

  - no namespace gets its "default" ServiceAccount, without which admission
    refuses Pods;
  - a new Node keeps the taint node.kubernetes.io/not-ready, which the admission
    plugin TaintNodesByCondition gives it, and nothing is scheduled onto it;
  - Deployments, ReplicaSets, Jobs and the like make no Pods, nothing is garbage
    collected, and namespaces stay Terminating;
  - the aggregated ClusterRoles "admin", "edit" and "view" are empty.

There are no kubelets either; package nodes simulates some, which answer kubectl logs
with the configuration that ControlPlane.NodeServing returns. The Service
"kubernetes" has no endpoints: nothing in a simulated cluster could reach them.

# Who may connect

The API servers listen on loopback, unless Options.BindAddress says otherwise,
and RBAC decides about requests. AdminConfig and the kubeconfig are for a
member of system:masters, UserConfig is for other users. etcd listens on a unix
socket in a directory of mode 0700, and on no port. All files have mode 0600.

# Several API servers

Servers on one etcd each have a watch cache of their own, so that one can lag
behind the other: reads from two servers show what a controller meets in a large
cluster. StopServer and StartServer take one away and bring it back at the same
address.

# Data directory

Without Options.DataDir, everything is in a temporary directory, etcd does not wait
for the disk, and Stop removes it all. If the process is killed, the next start with
a temporary directory removes what it left.

With Options.DataDir, the cluster is kept: its objects, its certificate authorities
and its service-account key. Addresses are not part of it, and may change from start
to start. The directory holds

	setpoint-controlplane.json  what wrote the directory, see below
	lock                        locked with flock while a process uses the
	                            directory; its text is that process's id
	etcd/                       etcd's own files
	pki/ca.crt, ca.key          the authority of the API servers and all users
	pki/front-proxy-ca.*        the authority of the API server's identity
	                            towards aggregated API servers
	pki/sa.key                  signs service-account tokens
	pki/apiserver.*, pki/front-proxy-client.*, pki/apiserver-kubelet-client.*,
	scheduler.kubeconfig        made anew at each start
	kubeconfig                  the administrator's; exists while all is ready
	controlplane.log            errors of the latest start, see Options.Logger
	etcd.sock                   exists while etcd runs; in a temporary directory
	                            instead if the path would be too long

The directory must belong to the user who starts the control plane, be no symbolic link
of another user, and so must its files and the directories above it, or else they belong
to root; if every user may write to one of those above, it must be sticky, as /tmp is.
A directory that group or others may write to is accepted while it is empty, and closed.
Anything else is refused with ErrUntrustedDataDir: keys in it may be known to another
user, and a link in it may lead to files of this one. Temporary directories that a killed
process left are removed if they belong to this user and no other user may enter them.

Authorities are valid for ten years, all other certificates for one year from the
start that made them. Keys are ECDSA P-256.

setpoint-controlplane.json is one JSON object: "format", a number that counts
incompatible changes of this layout (now 1), and "kubernetes" and "etcd", the minor
versions that wrote it, such as "1.37" and "3.7". A start upgrades a directory that the
minor version before wrote, and rewrites this file first: from then on, the older
version refuses the directory. A start refuses any other version with
ErrDataDirVersion, and a directory that has other files but not this one with
ErrNotDataDir. To skip a minor version or to go back, export the objects with the
version that wrote the directory, and import them into a new one.

# One process

Kubernetes keeps feature gates, its logger and its metrics in process-wide variables.
Several control planes may run in one process at the same time, with the same feature
gates; their logs and metrics mix. In a few cases Kubernetes ends the process rather
than return an error, for example when a start-up hook of an API server fails. Who
cannot live with that runs the command setpoint-controlplane as a child instead.
*/
package controlplane
