(** The tactics of all proofs here: stdpp's, and rewriting as ssreflect has it. *)
From Coq.ssr Require Export ssreflect.
From stdpp Require Export prelude gmap list.
Global Open Scope general_if_scope.
Global Set SsrOldRewriteGoalsOrder.
Ltac done := stdpp.tactics.done.
