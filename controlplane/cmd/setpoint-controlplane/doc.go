// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

/*
Setpoint-controlplane runs a real control plane: kube-apiserver, etcd and
kube-scheduler in one process, optionally with simulated nodes.

People start it from a shell and end it with Ctrl-C. Programs, such as
"setpoint up", start it as a child, and speak to it as follows.

Started under the name kube-apiserver, etcd or kubectl, by a link for example, it is that
program: with its flags, its output, its signals and its exit status, and without any of
what follows here. "setpoint assets" makes such links for tests that use envtest.

# Protocol

Standard output carries one JSON object a line, and nothing else. Each has the
field "state". A reader must ignore fields and states that it does not know.

	state     fields                      meaning
	starting  component, elapsed          the component is being started
	ready     component, elapsed          the component answers
	ready     kubeconfig, servers,        everything is ready: the line without
	          dataDir, caFile,            "component", written once
	          caKeyFile,
	          serviceAccountKeyFile,
	          elapsed
	stopping  reason                      a stop was asked for
	stopped   -                           everything has ended; the last line
	failed    error                       it could not start, or a part of it
	                                      died; the last line. What is left is
	                                      stopped before the process ends

The components are "etcd", "kube-apiserver" (further servers are
"kube-apiserver-1", "kube-apiserver-2", …), "kube-scheduler" and "nodes".
elapsed is the time since the start, in seconds, such as "1.9s". kubeconfig,
dataDir, caFile, caKeyFile and serviceAccountKeyFile are absolute paths; servers is a
list of URLs, such as "https://127.0.0.1:40123". The files are what
kube-controller-manager wants as --root-ca-file and --cluster-signing-cert-file,
--cluster-signing-key-file and --service-account-private-key-file. An example,
shortened:

	{"state":"starting","component":"etcd","elapsed":"0.0s"}
	{"state":"ready","component":"etcd","elapsed":"0.2s"}
	{"state":"ready","kubeconfig":"/tmp/…/kubeconfig","servers":["https://127.0.0.1:40123"],…,"elapsed":"2.2s"}
	{"state":"stopping","reason":"interrupt"}
	{"state":"stopped"}

The kubeconfig file appears right before the last "ready" (with --nodes, before the
nodes are ready) and is removed after "stopping".

Standard error is for people: an error as text, and, with -v, what the components
log. Without -v their errors go to controlplane.log in the data directory.

The exit status is 0 after "stopped", 1 after "failed", 2 for wrong flags (with
text on standard error and no line on standard output). A second request to stop
ends the process at once with status 130 or 143; a temporary data directory then
stays until the next start on this machine removes it.

SIGINT, SIGTERM and SIGHUP ask for a stop. With --lifeline, the end of standard
input does too: a parent hands it a pipe and keeps the other end open, so that
its own end, even by SIGKILL, ends the child cleanly. SIGINT and SIGHUP are then
ignored, because a terminal sends them to parent and child alike and it is for the
parent to decide.
*/
package main
