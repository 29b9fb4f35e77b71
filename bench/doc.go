// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Bench measures Setpoint beside its peers, on real parts, in one run.
//
//	go run . figures
//	go run . cache
//	go run . readers
//	go run . relist
//	go run . informers
//	go run . queue
//	go run . queue --soak 10000000
//	go run . loop
//	go run . consistency
//	go run . explain
//	go run . page
//	go run . chaos
//	go run . watch
//	go run . soak --for 30m
//	go run . operators
//	go run . envtest --assets "$(setpoint assets)"
//	go run . manager
//	go run . manager --record
//	go run . manager --decoded-budget 0,4Mi,16Mi --case services
//	go run . manager --case services|gc|namespace|nodes|pods20000
//	go run . manager --case jobs|statefulsets|daemonsets|disruption|hpa
//	go run . manager --case quota|volumes|attach|everything|start
//
// Each measure is one line:
//
//	name setpoint=… peer=… ratio=… aim=… ok|short|told
//
// ratio is Setpoint's figure over the peer's. Candidates take turns, so that a
// machine whose speed drifts treats all alike; the figures are medians over the
// turns, and the spread is printed with -v. A measure that misses its aim says
// "short"; it is no failure of the command. One without an aim says "told": among
// these are the cases in which the design loses.
//
// # All figures
//
// "figures" measures every case that docs/performance.md names, in a comment before each table, and writes the tables anew. It compares
// each ratio with that of the table before, and prints a line "worse:" if it got worse by more than the turns of either run are apart.
// A table is written as soon as its case has ended; a case that fails leaves its table as it was, and the command fails at its end.
// --only names the beginnings of commands, to write some tables alone. "make bench" builds what all cases need, and runs it.
//
// The module has a workspace of its own (go.work): the peers' versions are its own,
// the newest there are.
//
// # Managers
//
// "manager" starts each candidate on a fresh control plane, a real API server with
// etcd. Without --case it is about Deployments. With it it is about where there is
// much of something, and both sides run the same controllers, which are printed:
//
//	services   CPU of the event of a Pod that no Service selects, with 10 and with 5,000 Services beside it
//	gc         20,000 Pods of 200 owners, from the deletion of these until the last Pod is gone
//	namespace  10,000 objects of 20 kinds, from the deletion of their namespace until that is gone
//	nodes      1,000 simulated Nodes: their heartbeats, and 300 of them that fall silent at once
//	pods20000  memory with all controllers that Setpoint has, and 20,000 Pods
//
//	jobs          an indexed Job of 10,000 completions, 500 at a time, and then 1,000 Jobs of one
//	statefulsets  200 Parallel StatefulSets of 10 Pods, and then 200 OrderedReady ones
//	daemonsets    20 DaemonSets on 500 Nodes, and then the rolling update of one
//	disruption    500 budgets with 20,000 Pods, which become unready, and every second one ready again
//	hpa           500 autoscalers of 1,000 Pods on simulated Nodes: at rest, and when all Pods use twice the CPU
//
//	quota         200 quotas, under 1,000 creations and deletions of Pods and ConfigMaps a second
//	volumes       5,000 claims of the simulated driver, whose requests are among those that are printed
//	attach        2,000 volumes of Pods on 100 simulated Nodes: attached at once, and detached when all are drained
//	everything    all controllers on 1,000 simulated Nodes: at rest, and started with 50,000 objects
//	start         all controllers beside 50,000 Pods of 1,000 Deployments on 5,000 Nodes: the start, the takeover from a manager
//	              that was killed, and the handover from one that ends
//
// In the first four of the second list a Pod has no node: as soon as it is created, a client writes that it is ready or
// has succeeded, as its kubelet would.
//
// "start" has one control plane for all turns, and one manager after the other: the state at rest is the same for both. The Nodes
// have no kubelets and no heartbeats, and the managers are given a grace period of a day. A start is from before the process begins: until it has
// replaced a Pod that was missing, and until each controller that writes something at once has written it. For the takeover the manager that leads gets
// SIGKILL while a second one is at rest; the time counts from the end of the Lease, by its last renewal, until the second one has replaced a Pod.
// For the handover the one that leads gets SIGTERM, and the time counts from then until the next one has replaced a Pod. Both Pods are removed
// when the process that led has ended.
//
// --size makes them smaller or larger. Where the server may be what is slow, plain
// clients that delete the same objects one by one are measured on the same server.
// kube-controller-manager is linked with libc here, as "go build" does it, of which 1.3 MB
// are resident; Setpoint is not.
//
// With --decoded-budget, it compares the manager with itself, with these budgets of decoded objects.
//
// With --record, and without --case, it compares the manager with the same manager without a record of its runs.
//
// The requests of each side, without watches, are printed by verb and resource: those that the API server counted, less
// those of the benchmark itself. With --profile FOLDER, CPU profiles of both managers are written every five seconds of
// each part, and a heap profile at its end; "go tool pprof -top FOLDER/setpoint-indexed-cpu-*.pb.gz" adds them up. The
// peer serves its profiles on its secure port then. With --peer=false only Setpoint is measured.
//
// CPU is the manager's alone, until it is at rest again; the clock of /proc has
// hundredths of a second, so that a figure below a tenth says little. Both wait five
// seconds before they delete what is in a namespace, so that every API server has learned
// that it terminates; the rate counts from when the first object went. kube-controller-manager
// takes no Node for silent within 50 s, and neither does Setpoint.
//
// # Operators
//
// "operators" builds the core manager of cluster-api and trust-manager from their modules, each twice, with the same versions
// of all modules: with NewCache of package adapters/controllerruntime in the lines that make its caches, and as it is. The
// lines are printed. --operators chooses one of them.
//
// For cluster-api there are --size Machines on a real API server, in MachineSets of 100 with a MachineDeployment each, and a
// Cluster for each 1,000. The Machines have the status of ones that run. The Clusters are paused: the
// manager then reads each object with its owners and its Cluster, and has nothing to write, so that the figures are of
// the cache and of its readers. It needs no workload clusters. A first run, which is not measured, writes what
// is new; the requests of each run are printed. A turn starts a binary, and ends when it has reconciled every Machine
// and is at rest. The heap is what a collection leaves, the CPU all that the process has used until then; the heap of a
// Machine is what it is above that of a run without objects. Both binaries have their webhook server
// on the loopback interface, by a second line.
//
// For trust-manager there are --size Namespaces and one Bundle, for which it writes a ConfigMap in each of them, in the first run.
// It caches the Namespaces, and the metadata of the ConfigMaps. A turn ends when it has reconciled the Bundle, for which it
// looks at each Namespace and its ConfigMap, and is at rest. Both binaries have a server of profiles, serve on the loopback
// interface, and have a client without a limit of requests, by further lines.
//
// # Envtest
//
// "envtest" has controller-runtime's envtest start and stop kube-apiserver and etcd: those of "setpoint assets", and
// those that "make stock" builds as Kubernetes and etcd have them. Between start and stop, five kinds are
// defined, and removed until the server no longer has them. The first turn of each side does not count.
//
// # Watches
//
// "watch" has 100,000 Pods of the corpus on a real API server, each created and then
// reported as running, which no scheduler binds. Then there are 500 writes a second, of
// Pods chosen by a seed: nine in ten are updates of an image and of an annotation, one in
// twenty a creation, one in twenty a deletion, which is two changes: the server marks a
// Pod before it is gone. bin/setpoint-watch and the way of kubewatch on the newest
// client-go (peers/clientgo/kubewatch), each a process of its own, print a line of JSON
// for each, which this process reads. The figures that begin with "watch" are of both told
// of the same writes at the same time; with "alone", of one after the other on the same
// cluster; with "cursor", of Setpoint alone with --cursor, held against the peer alone,
// which has nothing of the kind.
//
// Lag is from just before the request of a write until its line has been read: most of it
// is the server's time, which is printed as well. A change that was accepted and has no
// line is lost. Changes that are printed twice, out of order or without having been made
// are counted. Synced means that a change is printed, which is tried every quarter of a
// second. Memory is resident, at rest: the peak holds what garbage there was. The heap is
// what a collection leaves. What the lines say differs: Setpoint's have old and new value
// of each field and who wrote it, kubewatch's that there was a change.
// "--replay" takes Pods and changes from a server in this process: in two minutes it shows what a change costs each, and
// not how far each is behind a server that is busy.
//
// # Soaks
//
// "soak" measures no peer. It starts bin/setpoint-controlplane, with three simulated
// nodes, two bin/setpoint managers that elect a leader, and informers with handlers in
// this process. About four times a second something happens that a seed chooses:
// Deployments with Services are created, rolled, scaled and deleted, ConfigMaps come and
// go, custom resources are defined, have objects and are removed, handlers and informers
// are added and removed. Every few seconds a proxy cuts all connections of informers and
// managers; about once in 75 s the control plane is killed and started with the same data
// and port; about once in 60 s the manager that leads ends, in turns by SIGTERM and
// SIGKILL, but not in the last two fifths, so that the last leader has time to leak.
// A manager that ends because it could not renew its lease is started again.
//
// After the first minute, or the first third where that is less, the load stops,
// everything that it made is deleted, and heap (what a collection leaves), goroutines
// and open files of this process and of both managers are taken; and once more at the
// end. A heap may then be larger by a quarter and 2 MB, and the other two by a tenth
// and 10 (soak_figures.go). What is being closed is no leak: figures that are beyond their
// bounds are measured again for 100 seconds.
//
// When the load has stopped, and again when everything is deleted, each informer, and
// what a handler of it was told, is held against a list of the server by UID and
// resourceVersion, for up to three minutes until nothing differs. The command fails
// for a leak or a difference, names the seed, and keeps the logs. The same seed gives the
// same plan; how it falls together with the servers is the machine's.
//
// # Queues
//
// "queue" measures one add, get and done: in one goroutine, which gets a key, adds
// another and is done with the first, and with eight consumers and one goroutine that
// adds, at most a thousand keys ahead. All sides of a ratio have keys of the same type:
// object.Key in the lines that begin with object-key, "namespace/name" in those that
// begin with string. Setpoint's queue has a priority and a cause in each add, and counts,
// as it always does; client-go's is the plain one, without priorities and without
// metrics; controller-runtime's has priorities and its metrics. Workers call Get and
// Done; the lines that end in "items" are of Setpoint's Items, which ends a key and
// takes the next in one step. "rate-limited" is an add after a failure alone, with the
// limits that each side's controllers have; that of controller-runtime is a note for
// later. Turns are short, a few milliseconds, and many: of a machine that is shared
// each side gets as many good moments as the other.
//
// "queue --soak N" measures nothing: it makes N adds from 32 goroutines while eight
// work them off. Half are of 5,000 keys that are added again and again, delayed, after
// failures, in groups, with every priority; of the other keys each is added once. What
// is counted apart from the queue is held against what it handed out, and the command
// fails if an add was lost or doubled, or if a key had two workers. Lost is an add that
// no run of its key began after, or that no run counted; doubled is a run without
// an add, or an add that two runs counted.
//
// # Loops
//
// "loop" measures a controller as each side's documentation writes it, with defaults:
// Setpoint's reads its own writes, and has client.QuietConnections as a manager does, controller-runtime's has its priority queue. Each
// runs in a process of its own. For reconciles that do nothing the server is a replay,
// and both read the same bytes of Pods: 20,000 changes at once, each of another Pod, so
// that each is a reconcile, and then changes one by one, whose time from the server to
// the reconcile is taken by the clock that both processes read. "reading" is a
// reconcile that gets its Pod, decoded and its own. For reconciles that write, an
// annotation by a merge patch, there is a real API server; how late these are counts
// from the request of the change, and is mostly the server's time.
// With --record it compares the loop with the same loop without a record of its runs. Both are in one process then, and have
// work by turns: 50 bursts of 4,000 changes each, of which the median counts. Those that write are in processes of their own.
//
// # Consistency
//
// "consistency" is about keys whose cache does not have what their last run wrote. Each of four ConfigMaps owns 1, 10 or 100 ServiceAccounts on a real
// API server. A run writes a label of each ServiceAccount that has not got what its owner wants. As soon as all four are written, every owner
// changes again, which enqueues it, while the watch of ServiceAccounts lags by 0, 50 or 500 ms behind the server: a proxy on the loopback interface
// delays its bytes, and those of no other request. Each side has four workers, so as many as there are owners, and speaks HTTP/1.1 without TLS to
// the proxy. Setpoint holds the key in its queue until the cache has the writes. "kube-controller-manager" is a controller over client-go's informers and queue
// that does what kube-controller-manager 1.37 does (consistency_clientgo.go): the run ends with an error, and is repeated with growing
// delay. controller-runtime has EnableReadYourWritesConsistency, with which the read of the run waits.
//
// "wasted-runs" are those of a round and an owner that had to be repeated, or that wrote once more because they did not see what was written. "delay" is
// from when the cache has the writes and the second change, by a handler in the process, until the run ends that saw both. The events of ServiceAccounts enqueue their
// owner, so a peer need not wait for its back-off. "others-per-second" is in a second part of as many rounds: runs of 20 other keys
// that ask to run again after 10 ms, in the time from the last write of all owners until the last of these runs. The CPU is that of the first part.
//
// # Answers
//
// "explain" measures how long a user waits for setpoint explain. A manager creates the Pods of 2,000 Deployments on a real
// API server, and clients write that each Pod is ready. No node runs them. The manager's record begins with the file of an
// earlier process, so it is full and drops runs all the time; the command fails if it is not. Then setpoint explain and
// kubectl describe are started in turn for a Deployment, a Pod, a Namespace and a Pod that does not exist, which a seed
// chooses: the figure is the time from before the process starts until it has ended. An answer without what the manager
// recorded is an error. The lines below are of this process, whose connections are open: finding the kinds, finding the
// managers, and collecting the facts of an answer. "process-alone" is setpoint version.
//
// # The page
//
// "page" measures the page in a headless Chromium, in the same cluster and with the same full record as "explain". Each visit has
// a tab that has loaded nothing before, and a figure is the browser's own: from the navigation to the first contentful paint.
// "answer" is the part until the server's answer has arrived. The visits are to the loops, and to a Deployment, a Pod and what happened in a namespace, which a seed chooses; first at rest, and
// then ("busy") while clients change ReplicaSets --rate/2 times a second, each of which is a run of two controllers. Under the same
// load two tabs are open in every second part, at the loops and at a Deployment: setpoint= is the CPU of the manager then, peer=
// that without a tab. How many runs there were is printed. Chromium takes its part of the same machine.
//
// # Informers
//
// "cache", "readers" and "relist" measure Setpoint's informers beside client-go's
// shared informers, used as their documentation says: from the factory, with the
// index by namespace, over protobuf where the kind has it, with one handler that
// reads a label and the version of each object. Both are notified of every
// change; that Setpoint's would merge changes for a handler that is behind is not
// used. client-go's feature gates are as they come.
//
// The objects are a corpus that looks like a cluster and is the same each time (corpus.go
// and its neighbours): Pods of ReplicaSets, Nodes, ConfigMaps that people wrote, a custom
// resource, which travels as JSON, and ConfigMaps of random bytes, which do not compress.
// They are encoded once, onto a tape (tape.go), and a server plays that to all
// (replay.go): in a real one's frames, but with nothing to compute, uncompressed, and
// without TLS. Each side runs in a process of its own, so that its heap and its CPU time
// are its own. The server is in the parent process, and its CPU time does not count; but
// it takes its part of a small machine, and rates by the clock are of both together.
//
// Heaps are what two collections leave, less what there was before the informer started,
// and nothing is decoded in them but by the side that holds decoded objects. The CPU of
// the first sync is that of the whole process from the start of the informer until its
// handler has been notified of every object. The CPU of an event includes the two and a half seconds
// after the last one, in which Setpoint packs what it has kept as it came. "cache --profile" writes CPU profiles of
// the steps. Reads are of objects that a reader holds (warm),
// or that were not read since the last collection (cold), which for client-go is the
// same.
//
// # What is equal where readers and a writer meet
//
// "readers" compares how fast a store is written while goroutines list everything
// in a loop. A list is what needs no decoding: client-go's Indexer.List, and a walk
// through all items of a snapshot. Sockets would measure the scheduler, so both
// sides read their watch from memory, within the process: from the bytes of an
// event to the store, decoding included, as fast as they go. Writes are counted by
// the version that the store has reached, because the informer of client-go queues
// what its store cannot take yet.
//
// That queue is emptied a thousand changes at a time, under one lock, in the newest
// client-go. Many changes are then written between two waits for readers, and what
// the wait costs is seen in how late they are: "lag" is the time from one change at
// the server to the handler, when there is nothing else to write. The lines that
// end in "vs-indexer" hold Setpoint's rate, with all that it includes, against the
// store of client-go's informers alone, as a writer of one object at a time
// sees it: the objects are decoded already, and one goroutine calls Update.
//
// What readers cost is CPU as well as locks, so Setpoint's rate beside ten readers
// is held against its rate beside ten goroutines that spin and touch nothing.
//
// Then "readers" measures lists that one reader makes in a loop while nothing changes: the CPU time of the first, and
// of the others. Setpoint keeps decoded objects within --budget. "metadata-selected" reads the versions of the objects
// that a selector matches, "few-selected" lists the Pods of one ReplicaSet by their label, and "namespace", "selected" and
// "all" list whole objects.
//
// # Many informers
//
// "informers" starts a thousand informers in one process, each of the ConfigMaps of another namespace, of which there are few, with a
// handler each. All of them watch one server, over HTTP/2. Memory is the live heap and the stacks, at rest, without what a first
// informer took. Then all but the first are stopped, and nothing of them may be left.
//
// # Relists
//
// "relist" has the server refuse the requested version, with 410, so that both list
// again: once as a watch that begins with the state, once by a list. The heap in
// use is held against the highest that it is while changes come, because both have
// garbage in them; the live heap, what a collection leaves, against itself at rest.
package main
