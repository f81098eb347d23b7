(** What transactions did, as values: logs of reads and writes; and what it is for such logs to be those of one run, each
    transaction alone, one after the other.

    A transcript of verified/txn/history.dfy. A line in quotes after the name of a file stands so in that file;
    check.py looks. *)
From Tansy Require Export Tactics.

(** An object has a number (in objects.dfy a Key: block and offset). A volume [Vol] is known by what its objects
    are: [cell st k], and [keys] are those there are, whatever the volume holds. *)
Definition key := nat.

(* txn/history.dfy Op: "datatype Op = OpRead(key: uint64, value: Object) | OpWrite(key: uint64, value: Object)" *)
Inductive access {Obj : Type} := OpRead (k : key) (o : Obj) | OpWrite (k : key) (o : Obj).
Arguments access : clear implicits.
(* txn/history.dfy Log: "type Log = seq<Op>" *)
Notation log Obj := (list (access Obj)).

Section history.
  Context {Obj Vol : Type} (keys : gset key) (cell : Vol → key → Obj).
  Implicit Types (l : log Obj) (st : Vol).

  Definition write (m : gmap key Obj) (e : access Obj) : gmap key Obj :=
    match e with OpWrite k o => <[k:=o]> m | OpRead _ _ => m end.
  (* what it wrote, and last.
     txn/history.dfy Writes: "if l == [] then map[] else var e := l[|l|-1];"
     txn/history.dfy Writes: "if e.OpWrite? then Writes(l[..|l|-1])[e.key := e.value] else Writes(l[..|l|-1])" *)
  Definition Writes l : gmap key Obj := foldl write ∅ l.
  (* txn/history.dfy After: "function After(kinds: Kinds, l: Log, st: Vol, k: uint64): Object {"
     txn/history.dfy After: "if k in Writes(l) then Writes(l)[k] else Cell(st, kinds, k)"
     txn/history.dfy After: "}" *)
  Definition After l st k : Obj := default (cell st k) (Writes l !! k).
  (* txn/history.dfy Finds: "forall i {:trigger l[i]} :: 0 <= i < |l| && l[i].OpRead? ==> OkKey(kinds, l[i].key) &&"
     txn/history.dfy Finds: "l[i].value == After(kinds, l[..i], st, l[i].key)" *)
  Definition Finds l st : Prop :=
    ∀ i k o, l !! i = Some (OpRead k o) → k ∈ keys ∧ o = After (take i l) st k.
  (* txn/history.dfy Put: "Cell(st1, kinds, k) == if k in m && k as int < lim then m[k] else Cell(st0, kinds, k)) &&"
     (lim is more than any k; what is in no object stays as it is, which matters to nobody here) *)
  Definition Put st0 st1 (m : gmap key Obj) : Prop :=
    ∀ k, k ∈ keys → cell st1 k = default (cell st0 k) (m !! k).
  (* txn/history.dfy Leads: "predicate Leads(kinds: Kinds, l: Log, st0: Vol, st1: Vol) {"
     txn/history.dfy Leads: "Finds(kinds, l, st0) && Put(kinds, st0, st1, Writes(l), 0x1_0000_0000_0000_0000)"
     txn/history.dfy Leads: "}" *)
  Definition Leads l st0 st1 : Prop := Finds l st0 ∧ Put st0 st1 (Writes l).
  (* txn/history.dfy Serial: "forall n {:trigger logs[n]} {:trigger n in logs} :: n in logs ==> 0 < n < |vs| &&"
     txn/history.dfy Serial: "Leads(kinds, logs[n], vs[n - 1], vs[n])" *)
  Definition Serial (logs : gmap nat (log Obj)) (vs : list Vol) : Prop :=
    ∀ n l, logs !! n = Some l → 0 < n ∧ ∃ st0 st1, vs !! (n - 1) = Some st0 ∧ vs !! n = Some st1 ∧ Leads l st0 st1.
  (* txn/history.dfy Complete:
       "predicate Complete(logs: Logs, vs: seq<Vol>) { forall n :: 0 < n < |vs| ==> n in logs }" *)
  Definition Complete (logs : gmap nat (log Obj)) (vs : list Vol) : Prop :=
    ∀ n, 0 < n < length vs → is_Some (logs !! n).
  (* txn/history.dfy All:
       "function All(logs: Logs, n: int): Log { if n <= 0 then [] else All(logs, n - 1) + if n in logs then logs[n] else [] }" *)
  Fixpoint All (logs : gmap nat (log Obj)) n : log Obj :=
    match n with 0 => [] | S m => All logs m ++ default [] (logs !! n) end.

  Lemma Writes_snoc l e : Writes (l ++ [e]) = write (Writes l) e.
  Proof. unfold Writes. by rewrite foldl_app. Qed.
  (** What follows from [Leads] of an object. *)
  Lemma Leads_cell l st0 st1 k : Leads l st0 st1 → k ∈ keys → cell st1 k = After l st0 k.
  Proof. intros [_ H] Hk. exact (H k Hk). Qed.
End history.
