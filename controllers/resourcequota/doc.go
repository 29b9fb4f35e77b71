// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resourcequota counts what ResourceQuotas limit.
//
//	kubectl create ─▶ API server: status.used + request ≤ status.hard ?
//	                     │ no: 403 Forbidden
//	                     │ yes: status.used is raised, and then the object is stored
//	                     ▼
//	                  object ─▶ this controller: lowers status.used when it goes
//
// The API server decides about each creation, with the status of the quotas of the namespace. It
// only ever raises status.used. This controller writes the first status of a quota, lowers
// status.used when objects go or get smaller, and mends it.
//
// # What it watches and writes
//
// It watches ResourceQuotas, and each kind that at least one of them limits: the metadata where
// only the number of objects counts, the whole objects where their content does. It discovers which
// kinds the server serves, at the start, every 30 s, and whenever custom kinds or aggregated servers
// change. The watch of a kind begins with the first quota that limits it, and ends with the last.
// The garbage collector follows kinds in the same way, by package internal/discovery and informers
// that both share. It writes the status of ResourceQuotas and nothing else.
//
// # What an event costs
//
// Each quota has an account, and the account a tally for each kind: the sum of what the objects
// count for, and what each of them counts for. An event finds the accounts of its namespace, takes
// the amount of the object before from the sum and adds the amount of the object now. The number of
// objects in the namespace does not matter, and namespaces without a quota cost one look into a
// map. Package controller/accounting has the amounts. A Pod that is being deleted counts until its
// grace period is over; a timer runs the quota at that moment.
//
// Every --resource-quota-sync-period, the sums of a quota are compared with a full count of the
// cache. A difference is a mistake in this program: it is logged, mended, and counted in the metric
// setpoint_resourcequota_mended_total.
//
// # Beside admission
//
// Admission raises status.used before the object is stored. A controller that writes a count from
// this moment loses what admission has added, and another client gets it a second time. The
// resourceVersion does not help: the quota is the newest, the object is not there yet. So
//
//   - the controller lowers status.used by what it has seen go, and not to what it counts;
//   - it never writes less than it counts;
//   - what remains above the count is left for 40 s after admission has added it: the API server
//     ends a request after 34 s. After that it was added for a request that failed, and the
//     controller writes the count, which it first confirms by a list from the server. Such requests
//     are creations of a name that exists, and, where a namespace has two quotas, requests that
//     admission has charged to one and then refuses because of the other;
//   - each write carries the resourceVersion that the decision was made with. A conflict means that
//     admission has written meanwhile, and the decision is made again.
//
// So status.used is never less than the objects count for because of this controller, and it is the
// count when nothing happens any more. After a restart, the managedFields of the quota say when
// admission wrote it last; what is above the count and older than 40 s is lowered at once.
//
// # In which order
//
// The API server refuses everything that a quota limits until its status is complete. Such quotas
// come first in the queue. Changes of objects wait for others, 100 ms or, if the status was just
// written, up to a second, so that bursts lead to one write. While a quota is full, or what was freed
// is at least as much as what is left, a deletion is written at once, at most every 20 ms: the API
// server may be refusing the object that is to replace the deleted one.
//
// # Kinds that cannot be counted
//
// A resource waits for the kinds that count for it, and for no other kind: not for one that cannot
// be listed, such as a custom kind whose conversion webhook is broken, and not for one that
// discovery does not know. Such a resource keeps the value that status.used has, and an Event on
// the quota, KindNotCounted, says why. A kind that is not served any more has no objects.
//
// # What differs from kube-controller-manager
//
// Names and amounts are those of its controller of the same name
// (k8s.io/kubernetes/pkg/controller/resourcequota), with these differences:
//
//   - It waits for the first list of every kind of the server before it counts anything.
//   - It counts the whole namespace for each event, and watches every kind.
//   - It lowers status.used to what it counts, and does not react to objects that appear.
//   - It notices that a grace period is over at the next full count.
//   - It counts a quota again for each update of a PersistentVolumeClaim, and does not notice
//     changes of the node ports of a Service or of the classes of an object.
package resourcequota
